package jobspec

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// value evaluates an expression. What the file does not know is the node's matter and stays as text, see reference.
func (d *decoder) value(expr hclsyntax.Expression) cty.Value {
	switch e := expr.(type) {
	// This is a text that is one interpolation, "${x}", and has the type of x.
	case *hclsyntax.TemplateWrapExpr:
		return d.part(e.Wrapped)
	case *hclsyntax.TemplateExpr:
		return d.template(e)
	case *hclsyntax.TupleConsExpr:
		vals := make([]cty.Value, len(e.Exprs))
		for i, x := range e.Exprs {
			vals[i] = d.value(x)
		}
		return cty.TupleVal(vals)
	case *hclsyntax.ObjectConsExpr:
		return d.object(e)
	case *hclsyntax.ParenthesesExpr:
		return d.value(e.Expression)
	case *hclsyntax.FunctionCallExpr:
		return d.call(e)
	case *hclsyntax.ScopeTraversalExpr:
		// A word without quotes is a text whose quotes were forgotten: HCL says that there is no such variable.
		if d.inside == 0 && len(e.Traversal) == 1 && !isNodes(e.Traversal.RootName()) {
			return d.evaluate(e, d.ctx)
		}
	}
	return d.evaluate(expr, d.scope(expr))
}

// part evaluates what stands between "${" and "}".
func (d *decoder) part(expr hclsyntax.Expression) cty.Value {
	d.inside++
	defer func() { d.inside-- }()
	return d.value(expr)
}

// evaluate has HCL evaluate an expression, and keeps what it complains of.
func (d *decoder) evaluate(expr hclsyntax.Expression, scope *hcl.EvalContext) cty.Value {
	v, diags := expr.Value(scope)
	d.diags = append(d.diags, diags...)
	return v
}

// function finds a function by its name. The scope within a dynamic block has none of its own, but its parents' are known there.
func (d *decoder) function(name string) (function.Function, bool) {
	for scope := d.ctx; scope != nil; scope = scope.Parent() {
		if f, known := scope.Functions[name]; known {
			return f, true
		}
	}
	return function.Function{}, false
}

// call evaluates a function whose arguments may hold the node's interpolations.
func (d *decoder) call(e *hclsyntax.FunctionCallExpr) cty.Value {
	f, known := d.function(e.Name)
	// HCL reports an unknown function, expands a last argument with "...", and hands expressions on unevaluated.
	if !known || e.ExpandFinal || takesExpressions(f) {
		return d.evaluate(e, d.scope(e))
	}
	args := make([]cty.Value, len(e.Args))
	for i, a := range e.Args {
		args[i] = d.value(a)
	}
	params := f.Params()
	for i := range args {
		kind := cty.DynamicPseudoType
		if i < len(params) {
			kind = params[i].Type
		} else if v := f.VarParam(); v != nil {
			kind = v.Type
		}
		// An argument that cannot be converted stays as it is: the call reports it in its own words.
		if c, err := convert.Convert(args[i], kind); err == nil {
			args[i] = c
		}
	}
	v, err := f.Call(args)
	if err != nil {
		d.errorf(e.Range(), "Error in function call", e.Name+": "+err.Error())
		return cty.DynamicVal
	}
	return v
}

// takesExpressions reports whether a function evaluates its arguments itself (try, can, convert).
func takesExpressions(f function.Function) bool {
	params := f.Params()
	if v := f.VarParam(); v != nil {
		params = append(params, *v)
	}
	return slices.ContainsFunc(params, func(p function.Parameter) bool {
		return customdecode.CustomExpressionDecoderForType(p.Type) != nil
	})
}

// template joins the parts of a quoted text, each evaluated by itself: some may be the node's and stay as written. The
// result is unknown if a part is, and that part's error was reported.
func (d *decoder) template(e *hclsyntax.TemplateExpr) cty.Value {
	var b strings.Builder
	for _, part := range e.Parts {
		v := d.part(part)
		if !v.IsKnown() {
			return cty.DynamicVal
		}
		text, err := convert.Convert(v, cty.String)
		if err != nil || text.IsNull() {
			d.errorf(part.Range(), "Wrong interpolation", "The value is no text.")
			return cty.DynamicVal
		}
		b.WriteString(text.AsString())
	}
	return cty.StringVal(b.String())
}

// object evaluates an object. A key that cannot be evaluated was reported and is left out.
func (d *decoder) object(e *hclsyntax.ObjectConsExpr) cty.Value {
	vals := map[string]cty.Value{}
	for _, item := range e.Items {
		k := d.key(item.KeyExpr)
		if k != "" {
			vals[k] = d.value(item.ValueExpr)
		}
	}
	return cty.ObjectVal(vals)
}

// key returns the text of an object's key: a bare word stands for itself, a key in parentheses is evaluated. It returns
// "" after it has reported an error.
func (d *decoder) key(expr hclsyntax.Expression) string {
	if k, ok := expr.(*hclsyntax.ObjectConsKeyExpr); ok {
		if word := hcl.ExprAsKeyword(k.Wrapped); word != "" && !k.ForceNonLiteral {
			return word
		}
		expr = k.Wrapped
	}
	text, err := convert.Convert(d.value(expr), cty.String)
	if err != nil || text.IsNull() || !text.IsKnown() {
		d.errorf(expr.Range(), "Wrong key", "A key is a text.")
		return ""
	}
	return text.AsString()
}

// native turns a value into what JSON would hold; whole numbers become int.
func native(v cty.Value) any {
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	t := v.Type()
	switch {
	case t == cty.String:
		return v.AsString()
	case t == cty.Bool:
		return v.True()
	case t == cty.Number:
		f := v.AsBigFloat()
		// An accuracy of 0 is big.Exact: the number fits into 64 bits.
		if i, acc := f.Int64(); acc == 0 && f.IsInt() {
			return int(i)
		}
		x, _ := f.Float64()
		return x
	case t.IsListType() || t.IsTupleType() || t.IsSetType():
		out := []any{}
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, native(e))
		}
		return out
	case t.IsMapType() || t.IsObjectType():
		out := map[string]any{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			out[k.AsString()] = native(e)
		}
		return out
	}
	return nil
}
