package jobspec

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Servers read job files of everybody who may ask them to. The parser recurses with the nesting of a file, and a stack
// that overflows ends the process; expressions can make much of little. No job file that somebody wrote comes near these.
const (
	maxText      = 1 << 20 // bytes
	maxNesting   = 500     // of brackets, blocks and templates
	maxOperators = 10_000  // in a file: chains of them nest as well; a %{directive} counts as ten
	maxLocal     = 1 << 20 // bytes of a local's text, or elements
	maxProduct   = 100_000 // elements of setproduct's result
)

// bounded looks at the text before it is parsed.
func bounded(text []byte, name string) hcl.Diagnostics {
	refuse := func(r hcl.Range, what string, most int) hcl.Diagnostics {
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Too large", Detail: fmt.Sprintf("A job file has at most %d %s.", most, what), Subject: &r,
		}}
	}
	if len(text) > maxText {
		return refuse(hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}, "bytes", maxText)
	}
	tokens, _ := hclsyntax.LexConfig(text, name, hcl.InitialPos) // the parser reports its errors
	depth, operators := 0, 0
	for i := range tokens {
		switch tokens[i].Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp:
			depth++
		case hclsyntax.TokenTemplateControl: // the time that a template takes grows with the square of these
			depth++
			operators += 10
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			depth = max(0, depth-1)
		case hclsyntax.TokenMinus, hclsyntax.TokenBang, hclsyntax.TokenQuestion, hclsyntax.TokenPlus, hclsyntax.TokenStar,
			hclsyntax.TokenSlash, hclsyntax.TokenPercent, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp,
			hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq:
			operators++
		default:
		}
		switch {
		case depth > maxNesting:
			return refuse(tokens[i].Range, "levels of nesting", maxNesting)
		case operators > maxOperators:
			return refuse(tokens[i].Range, "operators", maxOperators)
		}
	}
	return nil
}

// parse reads a file within the bounds.
func parse(text []byte, name string) (*hclsyntax.Body, hcl.Diagnostics) {
	if diags := bounded(text, name); diags.HasErrors() {
		return nil, diags
	}
	file, diags := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	return file.Body.(*hclsyntax.Body), nil
}

// weight is how much a value holds: bytes of text, and one for each element; it stops counting beyond the most.
func weight(v cty.Value, most int) int {
	total := 0
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) { // it returns no error
		total++
		if v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
			total += len(v.AsString())
		}
		return total <= most, nil
	})
	return total
}

// boundedProduct is setproduct, of as much as somebody may need.
func boundedProduct() function.Function {
	f := stdlib.SetProductFunc
	return function.New(&function.Spec{
		VarParam: f.VarParam(),
		Type:     f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			size := 1
			for _, a := range args {
				if a.IsKnown() && !a.IsNull() && a.CanIterateElements() {
					size *= a.LengthInt()
				}
				if size > maxProduct {
					return cty.UnknownVal(cty.DynamicPseudoType), fmt.Errorf("setproduct: more than %d elements", maxProduct)
				}
			}
			return f.Call(args)
		},
	})
}
