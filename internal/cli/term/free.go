package term

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Free is a block of an HCL file with keys of the user's choice, whose values are texts.
type Free struct {
	Keys hcl.Body `hcl:",remain"`
}

// Values are the keys of the block with their texts, in which references are those of refs (nil: there can be none); nil without a block.
// What is wrong names places and keys, and no values.
func (f *Free) Values(refs *hcl.EvalContext) (map[string]string, hcl.Diagnostics) {
	if f == nil {
		return nil, nil
	}
	attrs, diags := f.Keys.JustAttributes()
	out := map[string]string{}
	for name, attr := range attrs {
		v, more := attr.Expr.Value(refs)
		if diags = append(diags, more...); more.HasErrors() {
			continue
		}
		text, err := convert.Convert(v, cty.String)
		if err != nil || text.IsNull() {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: name + " must be a text", Subject: &attr.Range})
			continue
		}
		out[name] = text.AsString()
	}
	return out, diags
}
