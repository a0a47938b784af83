package jobspec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Declared names the variables that a job file declares; none if it cannot be read.
func Declared(text []byte) (names []string) {
	body, _ := parse(text, "job.hcl") // Parse reports its errors
	if body == nil {
		return nil
	}
	for _, b := range body.Blocks {
		switch {
		case b.Type == "variable" && len(b.Labels) == 1:
			names = append(names, b.Labels[0])
		case b.Type == "variables":
			names = slices.AppendSeq(names, maps.Keys(b.Body.Attributes))
		}
	}
	return names
}

// Given names the variables to which the text of a variables file gives values; none if it cannot be read.
func Given(varFile string) []string {
	body, _ := parse([]byte(varFile), "variables") // Parse reports its errors
	if body == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(body.Attributes))
}

// variables fills var.* from defaults, the environment, the variables file and the given texts: the later one wins.
func (d *decoder) variables(body *hclsyntax.Body, o Options) {
	fromFile, places := d.variableFile(o.VarFile)
	values := map[string]cty.Value{}
	declared := map[string]bool{}
	for _, b := range body.Blocks {
		switch b.Type {
		case "variable":
			d.labelled(b, func(name string) {
				declared[name] = true
				values[name] = d.variable(b, name, fromFile, o)
			})
		// Nomad also takes a block of variables without types, which have their defaults there.
		case "variables":
			for name, a := range b.Body.Attributes {
				declared[name] = true
				values[name] = d.chosen(name, cty.DynamicPseudoType, d.value(a.Expr), fromFile, o, a.SrcRange)
			}
		}
	}
	// A value without a declaration is an error, so that a misspelt name does not leave a default in force.
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if !declared[name] {
			d.errorf(places[name], "Undeclared variable", "The job file declares no variable \""+name+"\".")
		}
	}
	// Names in Env are not checked: the environment may hold variables of other files.
	for _, name := range o.VarNames {
		if !declared[name] { // it stands nowhere in the file
			d.diags = append(d.diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Undeclared variable", Detail: "The file declares no variable \"" + name + "\".",
			})
		}
	}
	d.ctx.Variables["var"] = cty.ObjectVal(values)
}

// variable decodes a variable block and returns the variable's value, checked by its validations. Without a type any
// value is taken. Sensitive is accepted for Nomad's job files and has no effect.
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
	v := d.chosen(name, kind, def, fromFile, o, b.TypeRange)
	for _, inner := range b.Body.Blocks {
		if inner.Type != "validation" {
			d.errorf(inner.TypeRange, "Unsupported block type", "A variable has validation blocks, not \""+inner.Type+"\".")
			continue
		}
		// A value that could not be evaluated was reported already, and would fail any condition.
		if v.IsWhollyKnown() {
			d.checkVariable(inner, name, v)
		}
	}
	return v
}

// checkVariable evaluates a validation block: condition, and the message if it does not hold.
func (d *decoder) checkVariable(b *hclsyntax.Block, name string, v cty.Value) {
	var message string
	var condition hclsyntax.Expression
	for key, a := range b.Body.Attributes {
		switch key {
		case "condition":
			condition = a.Expr
		case "error_message":
			if err := assign(&message, d.value(a.Expr)); err != nil {
				d.errorf(a.SrcRange, "Wrong value", "error_message: "+err.Error())
			}
		default:
			d.errorf(a.NameRange, "Unsupported argument", "A validation has condition and error_message, not \""+key+"\".")
		}
	}
	if condition == nil {
		d.errorf(b.TypeRange, "No condition", "A validation block needs a condition.")
		return
	}
	// A condition sees its own variable and no other, because the others may have no value yet.
	outer := d.ctx
	d.ctx = outer.NewChild()
	d.ctx.Variables = map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{name: v})}
	holds, err := convert.Convert(d.value(condition), cty.Bool)
	d.ctx = outer
	switch {
	case err != nil || holds.IsNull() || !holds.IsKnown():
		d.errorf(condition.Range(), "Wrong condition", "The condition of variable \""+name+"\" is neither true nor false.")
	case holds.False():
		d.errorf(condition.Range(), "Invalid value for variable", "The variable \""+name+"\": "+message)
	}
}

// chosen picks a variable's value and converts it to its type. A text from Options.Vars wins over the variables file,
// that over the environment, and each over the default. After an error, which it reports, the value is unknown, so that no
// other error follows.
func (d *decoder) chosen(name string, kind cty.Type, def cty.Value, fromFile map[string]cty.Value, o Options, at hcl.Range) cty.Value {
	v := def
	if text, ok := o.Env[name]; ok {
		v = d.fromText(text, kind)
	}
	if given, ok := fromFile[name]; ok {
		v = given
	}
	if text, ok := o.Vars[name]; ok {
		v = d.fromText(text, kind)
	}
	// NilVal means that nobody gave a value. Null is a value, which a default may have.
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
	// Neither variables nor functions are known here, so plain words fail to evaluate and are taken as text.
	expr, diags := hclsyntax.ParseExpression([]byte(text), "variable", hcl.InitialPos)
	if !diags.HasErrors() {
		if v, diags := expr.Value(nil); !diags.HasErrors() {
			return v
		}
	}
	return cty.StringVal(text)
}

// variableFile returns what a variables file says, and where.
func (d *decoder) variableFile(text string) (map[string]cty.Value, map[string]hcl.Range) {
	out, places := map[string]cty.Value{}, map[string]hcl.Range{}
	if text == "" {
		return out, places
	}
	body, diags := parse([]byte(text), "variables")
	d.diags = append(d.diags, diags...)
	if body == nil {
		return out, places
	}
	attrs, diags := body.JustAttributes()
	d.diags = append(d.diags, diags...)
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		d.diags = append(d.diags, diags...)
		out[name], places[name] = v, a.NameRange
	}
	return out, places
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
		// Each round evaluates the locals that wait for no other. A round that finds none has met a cycle.
		progress := false
		for _, name := range slices.Sorted(maps.Keys(pending)) {
			expr := pending[name]
			if slices.ContainsFunc(localsUsed(expr), func(used string) bool { _, waits := pending[used]; return waits }) {
				continue
			}
			values[name] = d.value(expr)
			// A few locals, each with the former twice, would fill the memory.
			if weight(values[name], maxLocal) > maxLocal {
				d.errorf(expr.Range(), "Too large", fmt.Sprintf("local.%s is larger than %d bytes and elements.", name, maxLocal))
				return
			}
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

// localsUsed returns the names of the locals that the expression refers to, for the order of evaluation.
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
