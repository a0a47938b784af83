package jobspec

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/drover-project/drover"
)

// Word is an argument or a block that a job file may hold.
type Word struct {
	Path    string // from the job, with dots: "group.task.template.data"
	Block   bool
	Refused string // why a job file with this block is refused; "" = it is taken
}

// Words returns everything that a job file may hold in its job block, in the order of the paths: an outline for
// documents and editors. A task may stand in a job too; it is listed in its group. Bodies with keys of the user's choice,
// such as meta and a driver's config, are arguments.
func Words() []Word {
	o := &outline{}
	d := &decoder{ctx: &hcl.EvalContext{}, outline: o}
	d.job(&hclsyntax.Body{}, &drover.Job{})
	slices.SortFunc(o.words, func(a, b Word) int { return strings.Compare(a.Path, b.Path) })
	return o.words
}

// outline is what a decoder collects that is asked for what it takes instead of being given a file.
type outline struct {
	path  []string
	words []Word
}

// describe notes the arguments, and visits each nested block with an empty one.
func (o *outline) describe(d *decoder, a attrs, b blocks) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		o.words = append(o.words, Word{Path: o.below(name)})
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		// A task directly in a job has the arguments of a group's task, which are listed there.
		if name == "task" && len(o.path) == 0 {
			continue
		}
		w := Word{Path: o.below(name), Block: true}
		before := len(d.diags)
		o.path = append(o.path, name)
		b[name](&hclsyntax.Block{Type: name, Labels: []string{name}, Body: &hclsyntax.Body{}})
		o.path = o.path[:len(o.path)-1]
		// Only refuse reports an error for an empty block; its detail is the reason.
		if len(d.diags) > before {
			w.Refused = d.diags[before].Detail
			d.diags = d.diags[:before]
		}
		o.words = append(o.words, w)
	}
}

// below returns the path of a name in the block that is being described.
func (o *outline) below(name string) string {
	return strings.Join(append(slices.Clone(o.path), name), ".")
}
