package hcl1

import (
	"bytes"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Parse reads HCL, and the older dialect that Nomad's own configuration is written in, as far as that is usual. That is free
// keys in quotes, options { "driver.raw_exec.enable" = "1" }, which HCL 2 only has in options = { … }.
func Parse(data []byte, name string) (*hcl.File, hcl.Diagnostics) {
	file, diags := hclparse.NewParser().ParseHCL(data, name)
	faults := diags
	for range 100 { // the parser tells of one block at a time
		if !faults.HasErrors() {
			break
		}
		var ok bool
		if data, ok = assignQuoted(data, faults); !ok {
			break
		}
		var again *hcl.File
		if again, faults = hclparse.NewParser().ParseHCL(data, name); !faults.HasErrors() {
			file, diags = again, nil
		}
	}
	if file != nil {
		if body, ok := file.Body.(*hclsyntax.Body); ok {
			freeBlocks(body)
		}
	}
	return file, diags
}

// assignQuoted makes name = { of name { where the parser found quoted keys inside. The places in messages about what
// comes behind it on the same line are off by two.
func assignQuoted(data []byte, diags hcl.Diagnostics) ([]byte, bool) {
	opens := map[int]bool{}
	for _, d := range diags {
		if d.Summary != "Invalid argument name" || d.Subject == nil {
			continue
		}
		if at := enclosing(data[:d.Subject.Start.Byte]); at >= 0 {
			opens[at] = true
		}
	}
	if len(opens) == 0 {
		return nil, false
	}
	var out bytes.Buffer
	for i, b := range data {
		if opens[i] {
			out.WriteString("= ")
		}
		out.WriteByte(b)
	}
	return out.Bytes(), true
}

// enclosing finds the brace that is open at the end of text, -1 if there is none. Braces in texts are rare in
// configurations; one would only make the second reading fail, and the first one's messages are given then.
func enclosing(text []byte) int {
	depth := 0
	for i, b := range slices.Backward(text) {
		switch b {
		case '}':
			depth++
		case '{':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// freeBlocks turns client's meta = { … }, options = { … } and chroot_env = { … } into the blocks that they also may be.
func freeBlocks(body *hclsyntax.Body) {
	for _, b := range body.Blocks {
		if b.Type != "client" {
			continue
		}
		for _, name := range []string{"meta", "options", "chroot_env"} {
			attr := b.Body.Attributes[name]
			if attr == nil {
				continue
			}
			object, ok := attr.Expr.(*hclsyntax.ObjectConsExpr)
			if !ok {
				continue
			}
			inner := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: object.SrcRange, EndRange: object.SrcRange}
			for _, item := range object.Items {
				key, diags := item.KeyExpr.Value(nil)
				if diags.HasErrors() || key.IsNull() {
					continue
				}
				inner.Attributes[key.AsString()] = &hclsyntax.Attribute{
					Name: key.AsString(), Expr: item.ValueExpr, SrcRange: item.ValueExpr.Range(), NameRange: item.KeyExpr.Range(),
				}
			}
			delete(b.Body.Attributes, name)
			b.Body.Blocks = append(b.Body.Blocks, &hclsyntax.Block{
				Type: name, Body: inner, TypeRange: attr.NameRange, OpenBraceRange: object.OpenRange, CloseBraceRange: object.SrcRange,
			})
		}
	}
}
