package jobspec

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// variables fills var.* from defaults, the variables file and the given texts, in this order.
func (d *decoder) variables(body *hclsyntax.Body, o Options) {
	fromFile := d.variableFile(o.VarFile)
	values := map[string]cty.Value{}
	declared := map[string]bool{}
	for _, b := range body.Blocks {
		switch b.Type {
		case "variable":
			d.labelled(b, func(name string) {
				declared[name] = true
				values[name] = d.variable(b, name, fromFile, o)
			})
		case "variables":
			for name, a := range b.Body.Attributes {
				declared[name] = true
				values[name] = d.chosen(name, cty.DynamicPseudoType, d.value(a.Expr), fromFile, o, a.SrcRange)
			}
		}
	}
	for _, name := range o.VarNames {
		if !declared[name] {
			d.errorf(body.SrcRange, "Undeclared variable", "The file declares no variable \""+name+"\".")
		}
	}
	d.ctx.Variables["var"] = cty.ObjectVal(values)
}

func (d *decoder) variable(b *hclsyntax.Block, name string, fromFile map[string]cty.Value, o Options) cty.Value {
	kind, def := cty.DynamicPseudoType, cty.NilVal
	for key, a := range b.Body.Attributes {
		switch key {
		case "type":
			t, diags := typeexpr.TypeConstraint(a.Expr)
			d.diags = append(d.diags, diags...)
			kind = t
		case "default":
			def = d.value(a.Expr)
		case "description", "sensitive":
		default:
			d.errorf(a.NameRange, "Unsupported argument", "A variable has type, default and description, not \""+key+"\".")
		}
	}
	return d.chosen(name, kind, def, fromFile, o, b.TypeRange)
}

// chosen picks a variable's value and converts it.
func (d *decoder) chosen(name string, kind cty.Type, def cty.Value, fromFile map[string]cty.Value, o Options, at hcl.Range) cty.Value {
	v := def
	if given, ok := fromFile[name]; ok {
		v = given
	}
	if text, ok := o.Vars[name]; ok {
		v = d.fromText(text, kind)
	}
	if v == cty.NilVal {
		d.errorf(at, "Unset variable", "The variable \""+name+"\" has no default and was not given.")
		return cty.DynamicVal
	}
	out, err := convert.Convert(v, kind)
	if err != nil {
		d.errorf(at, "Wrong value", "The variable \""+name+"\": "+err.Error())
		return cty.DynamicVal
	}
	return out
}

// fromText reads a flag's value: an expression where the type asks for one, else the words themselves.
func (d *decoder) fromText(text string, kind cty.Type) cty.Value {
	if kind == cty.String {
		return cty.StringVal(text)
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), "variable", hcl.InitialPos)
	if !diags.HasErrors() {
		if v, diags := expr.Value(nil); !diags.HasErrors() {
			return v
		}
	}
	return cty.StringVal(text)
}

func (d *decoder) variableFile(text string) map[string]cty.Value {
	out := map[string]cty.Value{}
	if text == "" {
		return out
	}
	file, diags := hclsyntax.ParseConfig([]byte(text), "variables", hcl.InitialPos)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return out
	}
	attrs, diags := file.Body.JustAttributes()
	d.diags = append(d.diags, diags...)
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		d.diags = append(d.diags, diags...)
		out[name] = v
	}
	return out
}

// locals evaluates local.*; they may use each other, in any order.
func (d *decoder) locals(body *hclsyntax.Body) {
	pending := map[string]hclsyntax.Expression{}
	for _, b := range body.Blocks {
		if b.Type == "locals" {
			for name, a := range b.Body.Attributes {
				pending[name] = a.Expr
			}
		}
	}
	values := map[string]cty.Value{}
	d.ctx.Variables["local"] = cty.ObjectVal(values)
	for len(pending) > 0 {
		progress := false
		for name, expr := range pending {
			if slices.ContainsFunc(localsUsed(expr), func(used string) bool { _, waits := pending[used]; return waits }) {
				continue
			}
			values[name] = d.value(expr)
			d.ctx.Variables["local"] = cty.ObjectVal(maps.Clone(values)) // the next may use it
			delete(pending, name)
			progress = true
		}
		if !progress {
			for name, expr := range pending {
				d.errorf(expr.Range(), "Cyclic local", "local."+name+" depends on itself.")
			}
			return
		}
	}
}

func localsUsed(expr hclsyntax.Expression) []string {
	var out []string
	for _, t := range expr.Variables() {
		if t.RootName() == "local" && len(t) > 1 {
			if a, ok := t[1].(hcl.TraverseAttr); ok {
				out = append(out, a.Name)
			}
		}
	}
	return out
}
