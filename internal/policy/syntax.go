package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-project/drover"
)

// Both syntaxes give the same tree: a block with labels is an object in an object, as it is in JSON.

// place is a line and a column of the text, the first of which are 1.
type place struct{ line, column int }

// value is an object, a list, a text, or something that rules never have.
type value struct {
	at    place
	kind  kind
	text  string  // of a text; else how it is called in messages
	list  []value // of a list
	items []item  // of an object, in the order of the text
}

type kind uint8

const (
	other kind = iota
	text
	list
	object
)

// item is a key of an object and what it has.
type item struct {
	key   string
	at    place
	value value
	block bool // written as a block without a label
}

// The bounds of a policy's text. Parsers recurse with the nesting, and no rule needs more than five levels.
const (
	maxText    = 256 << 10 // bytes
	maxNesting = 32
	maxRules   = 4096 // labels of namespaces, paths, node pools and host volumes together
)

// maxProblems bounds how many problems are told at once.
const maxProblems = 20

// problem is something wrong at a place.
type problem struct {
	at   place
	text string
}

// found are the problems so far.
type found struct{ problems []problem }

func (f *found) addf(at place, format string, args ...any) {
	f.problems = append(f.problems, problem{at, fmt.Sprintf(format, args...)})
}

// err joins the problems in the order of their places; nil if there are none. Errors: Invalid.
func (f *found) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(f.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	var all []error
	for _, p := range f.problems[:min(len(f.problems), maxProblems)] {
		all = append(all, fmt.Errorf("line %d, column %d: %s", p.at.line, p.at.column, p.text))
	}
	return drover.Errorf(drover.Invalid, "failed to parse policy: %w", errors.Join(all...))
}
