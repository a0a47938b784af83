package jobspec

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A reference is a name that the file does not know: ${NOMAD_ALLOC_ID}, ${attr.kernel.name}, or ${ANYTHING}, which may be
// a variable of the task's environment. Only the node has its value, so the reference itself is its value here: the
// text "${…}" as it was written, in expressions too.

// isNodes reports whether a name can only be the node's or the task's.
func isNodes(root string) bool {
	switch root {
	case "attr", "node", "meta", "env", "device":
		return true
	}
	return strings.HasPrefix(root, "NOMAD_") || strings.HasPrefix(root, "DROVER_")
}

// knows reports whether a name is the file's: a variable, a local, or the iterator of a dynamic block, which may hide
// one of the node's.
func (d *decoder) knows(root string) bool {
	if root == "var" || root == "local" { // also while they are being evaluated
		return true
	}
	for ctx := d.ctx; ctx != nil; ctx = ctx.Parent() {
		if _, ok := ctx.Variables[root]; ok {
			return true
		}
	}
	return false
}

// scope returns the scope to evaluate an expression in: the present one, with its references beside.
func (d *decoder) scope(expr hclsyntax.Expression) *hcl.EvalContext {
	var found reference
	for _, t := range expr.Variables() {
		if !d.knows(t.RootName()) {
			found.add(t, "${"+string(t.SourceRange().SliceBytes(d.src))+"}")
		}
	}
	if found.inner == nil {
		return d.ctx
	}
	scope := d.ctx.NewChild()
	scope.Variables = found.value().AsValueMap()
	return scope
}

// reference is a reference, or several that begin alike: "a.b" and "a.c" are two attributes of one object.
type reference struct {
	text  string
	inner map[string]*reference
}

// add puts a reference at the end of its path.
func (r *reference) add(path hcl.Traversal, text string) {
	for _, step := range path {
		name, found := stepName(step)
		if !found {
			break
		}
		if r.inner == nil {
			r.inner = map[string]*reference{}
		}
		next := r.inner[name]
		if next == nil {
			next = &reference{}
			r.inner[name] = next
		}
		r = next
	}
	r.text = text
}

// stepName is the name of a step of a path; none for a splat.
func stepName(step hcl.Traverser) (name string, found bool) {
	switch step := step.(type) {
	case hcl.TraverseRoot:
		return step.Name, true
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		key, err := convert.Convert(step.Key, cty.String)
		return textOf(key), err == nil
	}
	return "", false
}

// value is the reference as HCL sees it.
func (r *reference) value() cty.Value {
	if r.inner == nil {
		return cty.StringVal(r.text)
	}
	values := map[string]cty.Value{}
	for name, inner := range r.inner {
		values[name] = inner.value()
	}
	return cty.ObjectVal(values)
}
