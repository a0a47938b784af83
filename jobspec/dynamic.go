package jobspec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// expandedBlock is a block that is not dynamic: a separate type, so that a function cannot take an unexpanded one by
// mistake.
type expandedBlock struct{ *hclsyntax.Block }

// expanded replaces dynamic blocks by one block an element. The elements' values are written into the expressions,
// as decoding happens after the iterator is gone.
func (d *decoder) expanded(list hclsyntax.Blocks) []expandedBlock {
	var out []expandedBlock
	for _, b := range list {
		if b.Type != "dynamic" {
			out = append(out, expandedBlock{b})
			continue
		}
		d.labelled(b, func(kind string) {
			for _, made := range d.dynamic(b, kind) {
				out = append(out, expandedBlock{made})
			}
		})
	}
	return out
}

// dynamic makes the blocks of one dynamic block, one for each element of for_each. The iterator has the block's type as
// its name unless iterator says another. It returns nil after it has reported an error.
func (d *decoder) dynamic(b *hclsyntax.Block, kind string) []*hclsyntax.Block {
	iterator := kind
	if a, ok := b.Body.Attributes["iterator"]; ok {
		iterator = hcl.ExprAsKeyword(a.Expr)
	}
	each, ok := b.Body.Attributes["for_each"]
	// The content block is the body of every block that is made.
	var content *hclsyntax.Block
	for _, inner := range b.Body.Blocks {
		if inner.Type == "content" {
			content = inner
		}
	}
	if !ok || content == nil || iterator == "" {
		d.errorf(b.TypeRange, "Incomplete dynamic block", "A dynamic block needs for_each and a content block.")
		return nil
	}
	v := d.value(each.Expr)
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		d.errorf(each.SrcRange, "Wrong for_each", "It must be a list, set or map.")
		return nil
	}
	var out []*hclsyntax.Block
	for it := v.ElementIterator(); it.Next(); {
		// The iterator is visible only while this element is decoded, in a scope inside the present one.
		k, e := it.Element()
		parent := d.ctx
		d.ctx = parent.NewChild()
		d.ctx.Variables = map[string]cty.Value{iterator: cty.ObjectVal(map[string]cty.Value{"key": k, "value": e})}
		made := &hclsyntax.Block{Type: kind, TypeRange: b.TypeRange, Body: d.frozen(content.Body)}
		// Labels are evaluated in the element's scope, so that each block can have a name of its own.
		if labels, ok := b.Body.Attributes["labels"]; ok {
			made.Labels = d.texts(labels)
		}
		d.ctx = parent
		out = append(out, made)
	}
	return out
}

// frozen copies a body with its expressions evaluated now. The body itself stays as it is, because the next element
// needs its expressions.
func (d *decoder) frozen(body *hclsyntax.Body) *hclsyntax.Body {
	out := *body
	out.Attributes = hclsyntax.Attributes{}
	for name, a := range body.Attributes {
		c := *a
		c.Expr = &hclsyntax.LiteralValueExpr{Val: d.value(a.Expr), SrcRange: a.Expr.Range()}
		out.Attributes[name] = &c
	}
	// Dynamic blocks within are expanded here as well, because they may use this iterator.
	out.Blocks = nil
	for _, inner := range d.expanded(body.Blocks) {
		c := *inner.Block
		c.Body = d.frozen(inner.Body)
		out.Blocks = append(out.Blocks, &c)
	}
	return &out
}

// texts evaluates a list of strings, for the labels of a made block. It returns nil after it has reported an error.
func (d *decoder) texts(a *hclsyntax.Attribute) []string {
	var out []string
	v, err := convert.Convert(d.value(a.Expr), cty.List(cty.String))
	if err != nil || !v.IsKnown() || v.IsNull() {
		d.errorf(a.SrcRange, "Wrong labels", "It must be a list of texts.")
		return nil
	}
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		out = append(out, e.AsString())
	}
	return out
}
