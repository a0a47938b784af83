package jobspec

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/drover-project/drover/internal/validation"
)

// attrs says where each argument of a block goes; blocks says what to do with each nested block.
type (
	attrs  map[string]any
	blocks map[string]func(*hclsyntax.Block)
)

// fill decodes a body: first its arguments, then its blocks. What is in neither table is an error, and decoding goes on
// behind it, so that all errors are reported at once.
func (d *decoder) fill(body *hclsyntax.Body, a attrs, b blocks) {
	// Words asks for the two tables alone: there is no body to decode.
	if d.outline != nil {
		d.outline.describe(d, a, b)
		return
	}
	for name, attr := range body.Attributes {
		target, ok := a[name]
		if !ok {
			d.errorf(attr.NameRange, "Unsupported argument", fmt.Sprintf("An argument named %q is not expected here.", name)+meant(name, a, b))
			continue
		}
		v := d.value(attr.Expr)
		if !v.IsKnown() {
			continue // reported already
		}
		if err := assign(target, v); err != nil {
			d.errorf(attr.SrcRange, "Wrong value", name+": "+err.Error())
		}
	}
	for _, block := range d.expanded(body.Blocks) {
		if f, ok := b[block.Type]; ok {
			f(block.Block)
			continue
		}
		if target, ok := a[block.Type]; ok && len(block.Labels) == 0 { // env { } for env = { }
			if err := assign(target, d.free(block.Body)); err != nil {
				d.errorf(block.TypeRange, "Wrong value", block.Type+": "+err.Error())
			}
			continue
		}
		d.errorf(block.TypeRange, "Unsupported block type", fmt.Sprintf("Blocks of type %q are not expected here.", block.Type)+
			meant(block.Type, a, b))
	}
}

// meant names the argument or block that was perhaps meant by another name; "" if none is near.
func meant(name string, a attrs, b blocks) string {
	near := validation.Nearest(name, slices.Sorted(maps.Keys(a)))
	if near == "" {
		near = validation.Nearest(name, slices.Sorted(maps.Keys(b)))
	}
	if near == "" || near == name { // a block of a name that is an argument's, or the other way round
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", near)
}

// list appends a decoded element for each block.
func list[T any](into *[]*T, f func(*hclsyntax.Block, *T)) func(*hclsyntax.Block) {
	return func(b *hclsyntax.Block) {
		item := new(T)
		*into = append(*into, item)
		f(b, item)
	}
}

// one decodes a block that stands at most once; a second one is an error. The target stays nil without a block.
func one[T any](d *decoder, into **T, f func(*hclsyntax.Body, *T)) func(*hclsyntax.Block) {
	return func(b *hclsyntax.Block) {
		if *into != nil {
			d.errorf(b.TypeRange, "Second block", "There can be one "+b.Type+" block here.")
			return
		}
		*into = new(T)
		f(b.Body, *into)
	}
}

// free decodes a body with keys of the user's choice; nested blocks become lists of objects, as drivers expect.
func (d *decoder) free(body *hclsyntax.Body) cty.Value {
	vals := map[string]cty.Value{}
	for name, attr := range body.Attributes {
		vals[name] = d.value(attr.Expr)
	}
	// Blocks of one type become one list, in their order. They replace an argument of the same name.
	nested := map[string][]cty.Value{}
	for _, b := range d.expanded(body.Blocks) {
		v := d.free(b.Body)
		// Each label becomes an object with one key around the body, the first label outermost.
		for i := len(b.Labels) - 1; i >= 0; i-- {
			v = cty.ObjectVal(map[string]cty.Value{b.Labels[i]: cty.TupleVal([]cty.Value{v})})
		}
		nested[b.Type] = append(nested[b.Type], v)
	}
	for name, list := range nested {
		vals[name] = cty.TupleVal(list)
	}
	return cty.ObjectVal(vals)
}

// assign converts v to the type of what target points to and stores it there. Null leaves the target as it is, as if
// the argument were not given. Pointers to pointers are optional values, which stay nil until they are set. Numbers and
// booleans are also taken from text and the reverse, by the rules of HCL. A target of another type is a mistake in the
// tables of this package.
func assign(target any, v cty.Value) error {
	if v.IsNull() {
		return nil
	}
	switch t := target.(type) {
	case *string:
		return into(v, cty.String, t)
	case **string:
		*t = new(string)
		return into(v, cty.String, *t)
	case *bool:
		return into(v, cty.Bool, t)
	case **bool:
		*t = new(bool)
		return into(v, cty.Bool, *t)
	case **int:
		*t = new(int)
		return into(v, cty.Number, *t)
	case **int64:
		*t = new(int64)
		return into(v, cty.Number, *t)
	case *int, *int8, *uint8, *int64, *uint64, *float64:
		return into(v, cty.Number, t)
	case *time.Duration:
		return duration(v, t)
	case **time.Duration:
		*t = new(time.Duration)
		return duration(v, *t)
	case *[]string:
		return into(v, cty.List(cty.String), t)
	case *map[string]string:
		return into(v, cty.Map(cty.String), t)
	case *map[string][]string:
		return lists(v, t)
	// The keys in here are the user's own, so the values keep the types that they have in the file.
	case *map[string]any:
		m, ok := native(v).(map[string]any)
		if !ok {
			return fmt.Errorf("must be a block or an object")
		}
		*t = m
		return nil
	}
	return fmt.Errorf("cannot be set (%T)", target)
}

// into converts v to kind and stores it in target. Errors: those of the conversion, which name the type that is wanted.
func into(v cty.Value, kind cty.Type, target any) error {
	c, err := convert.Convert(v, kind)
	if err != nil {
		return err
	}
	return gocty.FromCtyValue(c, target)
}

// duration reads "30s", or a number of nanoseconds.
func duration(v cty.Value, t *time.Duration) error {
	if v.Type() == cty.Number {
		var n int64
		if err := gocty.FromCtyValue(v, &n); err != nil {
			return err
		}
		*t = time.Duration(n)
		return nil
	}
	var s string
	if err := into(v, cty.String, &s); err != nil {
		return err
	}
	x, err := time.ParseDuration(s)
	*t = x
	return err
}
