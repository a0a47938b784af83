package policy

import "fmt"

// hclParser reads the older dialect of HCL that policies are written in. It is HCL 2 without expressions: several things may
// stand in one line, keys may be quoted and labels not, and a block may have an equals sign.
type hclParser struct {
	found
	lexer
	token token // which is looked at
	depth int
}

// parseHCL returns the object that the whole text is.
func parseHCL(source []byte) (value, *found) {
	p := &hclParser{lexer: lexer{rest: string(source), at: place{1, 1}}}
	p.take()
	v := p.object(place{1, 1}, endOfRules)
	return v, &p.found
}

// take returns the token and goes on to the next one.
func (p *hclParser) take() token {
	t := p.token
	p.token = p.lexer.next()
	return t
}

// fail notes what is wrong with the token and skips the rest: what comes behind a syntax error is guesswork.
func (p *hclParser) fail(format string, args ...any) {
	switch t := p.token; t.mark {
	case broken:
		p.addf(t.at, "%s", t.text)
	case endOfRules:
		p.addf(t.at, "%s, got the end of the rules", fmt.Sprintf(format, args...))
	default:
		p.addf(t.at, "%s, got %q", fmt.Sprintf(format, args...), t.text)
	}
	p.lexer.rest, p.token = "", token{at: p.token.at}
}

// deeper enters one level, and reports whether it may be read.
func (p *hclParser) deeper() bool {
	if p.depth++; p.depth > maxNesting {
		p.fail("the rules have more than %d levels of nesting", maxNesting)
		return false
	}
	return true
}

// object reads items up to the sign that ends the object, which it takes.
func (p *hclParser) object(at place, end mark) value {
	v := value{at: at, kind: object, text: "a block"}
	if !p.deeper() {
		return v
	}
	defer func() { p.depth-- }()
	for p.token.mark != end {
		if p.token.mark == endOfRules {
			p.fail("a block needs its \"}\"")
			return v
		}
		i, ok := p.item()
		if !ok {
			return v
		}
		v.items = append(v.items, i)
		if p.token.mark == ',' {
			p.take()
		}
	}
	p.take()
	return v
}

// item reads a key with its value, or a block.
func (p *hclParser) item() (item, bool) {
	at := p.token.at
	if p.token.mark != ident && p.token.mark != quoted {
		p.fail("the name of a rule or of a setting is expected here")
		return item{}, false
	}
	out := item{key: p.take().text, at: at}
	inner := &out
	for {
		switch p.token.mark {
		case '=':
			p.take()
			var ok bool
			inner.value, ok = p.value()
			return out, ok
		case '{':
			inner.value = p.object(p.take().at, '}')
			inner.block = inner == &out
			return out, len(p.problems) == 0
		case ident, quoted:
			if !p.deeper() {
				return out, false
			}
			defer func() { p.depth-- }()
			label := p.take()
			inner.value = value{at: at, kind: object, text: "a block", items: []item{{key: label.text, at: label.at}}}
			inner = &inner.value.items[0]
		default:
			p.fail("\"=\" or \"{\" is expected behind %q", out.key)
			return out, false
		}
	}
}

// value reads what stands behind an equals sign or in a list.
func (p *hclParser) value() (value, bool) {
	at := p.token.at
	switch p.token.mark {
	case quoted:
		return value{at: at, kind: text, text: p.take().text}, true
	case '[':
		return p.elements(at)
	case '{':
		p.take()
		v := p.object(at, '}')
		return v, len(p.problems) == 0
	case ident, number:
		return value{at: at, text: p.take().text}, true
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
	for p.token.mark != ']' {
		e, ok := p.value()
		if !ok {
			return v, false
		}
		v.list = append(v.list, e)
		switch p.token.mark {
		case ',':
			p.take()
		case ']':
		default:
			p.fail("\",\" or \"]\" is expected behind an element of a list")
			return v, false
		}
	}
	p.take()
	return v, true
}
