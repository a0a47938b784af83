package policy

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// hclParser reads the older dialect of HCL that policies are written in: HCL 2 without expressions, where several things may stand in one
// line, keys may be quoted and labels not, and a block may have an equals sign.
type hclParser struct {
	found
	tokens hclsyntax.Tokens // without line ends and comments
	depth  int
}

// parseHCL returns the object that the whole text is.
func parseHCL(source []byte) (value, *found) {
	tokens, diags := hclsyntax.LexConfig(source, "", hcl.InitialPos)
	p := &hclParser{}
	for _, d := range diags {
		p.addf(placeOf(*d.Subject), "%s: %s", d.Summary, d.Detail)
	}
	for i := range tokens {
		if t := tokens[i].Type; t != hclsyntax.TokenNewline && t != hclsyntax.TokenComment {
			p.tokens = append(p.tokens, tokens[i])
		}
	}
	if len(p.problems) > 0 {
		return value{}, &p.found
	}
	v := p.object(place{1, 1}, hclsyntax.TokenEOF)
	return v, &p.found
}

func placeOf(r hcl.Range) place { return place{r.Start.Line, r.Start.Column} }

// next is the token that is read next; the last one, the end of the text, is never taken away.
func (p *hclParser) next() hclsyntax.Token { return p.tokens[0] }

func (p *hclParser) take() hclsyntax.Token {
	t := p.tokens[0]
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return t
}

// fail notes what is wrong with the next token and skips the rest: what comes behind a syntax error is guesswork.
func (p *hclParser) fail(format string, args ...any) {
	t := p.next()
	what := fmt.Sprintf("%q", bytes.TrimSpace(t.Bytes))
	if t.Type == hclsyntax.TokenEOF {
		what = "the end of the rules"
	}
	p.addf(placeOf(t.Range), "%s, got %s", fmt.Sprintf(format, args...), what)
	p.tokens = p.tokens[len(p.tokens)-1:]
}

// deeper enters one level, and reports whether it may be read.
func (p *hclParser) deeper() bool {
	if p.depth++; p.depth > maxNesting {
		p.fail("the rules have more than %d levels of nesting", maxNesting)
		return false
	}
	return true
}

// object reads items up to the token that ends the object, which it takes.
func (p *hclParser) object(at place, end hclsyntax.TokenType) value {
	v := value{at: at, kind: object, text: "a block"}
	if !p.deeper() {
		return v
	}
	defer func() { p.depth-- }()
	for p.next().Type != end {
		if p.next().Type == hclsyntax.TokenEOF {
			p.fail("a block needs its \"}\"")
			return v
		}
		i, ok := p.item()
		if !ok {
			return v
		}
		v.items = append(v.items, i)
		if p.next().Type == hclsyntax.TokenComma {
			p.take()
		}
	}
	p.take()
	return v
}

// item reads a key with its value, or a block.
func (p *hclParser) item() (item, bool) {
	at := placeOf(p.next().Range)
	key, ok := p.name("the name of a rule or of a setting is expected here")
	if !ok {
		return item{}, false
	}
	out := item{key: key, at: at}
	inner := &out
	for {
		switch t := p.next(); t.Type {
		case hclsyntax.TokenEqual:
			p.take()
			inner.value, ok = p.value()
			return out, ok
		case hclsyntax.TokenOBrace:
			inner.value = p.object(placeOf(p.take().Range), hclsyntax.TokenCBrace)
			inner.block = inner == &out
			return out, len(p.problems) == 0
		case hclsyntax.TokenIdent, hclsyntax.TokenOQuote:
			if !p.deeper() {
				return out, false
			}
			label, ok := p.name("a label is expected here")
			if !ok {
				return out, false
			}
			inner.value = value{at: at, kind: object, text: "a block", items: []item{{key: label, at: placeOf(t.Range)}}}
			inner = &inner.value.items[0]
			defer func() { p.depth-- }()
		default:
			p.fail("\"=\" or \"{\" is expected behind %q", key)
			return out, false
		}
	}
}

// name reads an identifier or a text in quotes.
func (p *hclParser) name(want string) (string, bool) {
	switch p.next().Type {
	case hclsyntax.TokenIdent:
		return string(p.take().Bytes), true
	case hclsyntax.TokenOQuote:
		v, ok := p.quoted(hclsyntax.TokenCQuote)
		return v.text, ok
	default:
		p.fail("%s", want)
		return "", false
	}
}

// value reads what stands behind an equals sign or in a list.
func (p *hclParser) value() (value, bool) {
	at := placeOf(p.next().Range)
	switch p.next().Type {
	case hclsyntax.TokenOQuote:
		return p.quoted(hclsyntax.TokenCQuote)
	case hclsyntax.TokenOHeredoc:
		return p.quoted(hclsyntax.TokenCHeredoc)
	case hclsyntax.TokenOBrack:
		return p.elements(at)
	case hclsyntax.TokenOBrace:
		p.take()
		v := p.object(at, hclsyntax.TokenCBrace)
		return v, len(p.problems) == 0
	case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit:
		return value{at: at, text: string(p.take().Bytes)}, true
	default:
		p.fail("a text in quotes or a list of them is expected here")
		return value{}, false
	}
}

// elements reads a list.
func (p *hclParser) elements(at place) (value, bool) {
	p.take()
	v := value{at: at, kind: list, text: "a list"}
	if !p.deeper() {
		return v, false
	}
	defer func() { p.depth-- }()
	for p.next().Type != hclsyntax.TokenCBrack {
		e, ok := p.value()
		if !ok {
			return v, false
		}
		v.list = append(v.list, e)
		switch p.next().Type {
		case hclsyntax.TokenComma:
			p.take()
		case hclsyntax.TokenCBrack:
		default:
			p.fail("\",\" or \"]\" is expected behind an element of a list")
			return v, false
		}
	}
	p.take()
	return v, true
}

// quoted reads a text up to the token that ends it. It has no templates.
func (p *hclParser) quoted(end hclsyntax.TokenType) (value, bool) {
	open := p.take()
	source := bytes.Clone(open.Bytes)
	for p.next().Type != end {
		switch p.next().Type {
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			source = append(source, p.take().Bytes...)
		case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			p.fail("rules have no templates: double the first sign")
			return value{}, false
		default:
			p.fail("the text needs its end")
			return value{}, false
		}
	}
	source = append(source, p.take().Bytes...)
	at := placeOf(open.Range)
	if open.Type == hclsyntax.TokenOQuote && !bytes.ContainsAny(source, `\$%`) {
		return value{at: at, kind: text, text: string(source[1 : len(source)-1])}, true
	}
	e, diags := hclsyntax.ParseExpression(source, "", open.Range.Start)
	if diags.HasErrors() {
		p.addf(at, "%s: %s", diags[0].Summary, diags[0].Detail)
		return value{}, false
	}
	v, diags := e.Value(nil)
	if diags.HasErrors() || v.IsNull() {
		p.addf(at, "the text cannot be read")
		return value{}, false
	}
	return value{at: at, kind: text, text: v.AsString()}, true
}
