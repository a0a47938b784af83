package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// jsonParser reads JSON into the tree, with places.
type jsonParser struct {
	found
	source  []byte
	decoder *json.Decoder
	at      place // of the byte at offset
	offset  int
}

// parseJSON returns the object that the whole text is.
func parseJSON(source []byte) (value, *found) {
	p := &jsonParser{source: source, decoder: json.NewDecoder(bytes.NewReader(source)), at: place{1, 1}}
	v, err := p.value(0)
	if err == nil {
		if _, err = p.decoder.Token(); errors.Is(err, io.EOF) {
			return v, &p.found
		}
		err = errors.New("something stands behind the end of the object")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("a bracket or a text is not closed")
	}
	p.addf(p.here(), "%s", err)
	return value{}, &p.found
}

// here is the place of what is read next. Offsets only grow, so that all places together cost one pass.
func (p *jsonParser) here() place {
	end := min(int(p.decoder.InputOffset()), len(p.source))
	for end < len(p.source) && bytes.IndexByte([]byte(" \t\r\n,:"), p.source[end]) >= 0 {
		end++
	}
	for p.offset < end {
		r, size := utf8.DecodeRune(p.source[p.offset:])
		p.offset += size
		p.at.column++
		if r == '\n' {
			p.at = place{p.at.line + 1, 1}
		}
	}
	return p.at
}

// value reads one value at the depth.
func (p *jsonParser) value(depth int) (value, error) {
	v := value{at: p.here()}
	token, err := p.decoder.Token()
	if err != nil {
		return v, err
	}
	if depth > maxNesting {
		return v, fmt.Errorf("the rules have more than %d levels of nesting", maxNesting)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return v, p.elements(&v, depth)
		}
		return v, p.items(&v, depth)
	case string:
		v.kind, v.text = text, token
	default:
		v.text = fmt.Sprint(token)
	}
	return v, nil
}

func (p *jsonParser) elements(v *value, depth int) error {
	v.kind, v.text = list, "a list"
	for p.decoder.More() {
		e, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.list = append(v.list, e)
	}
	_, err := p.decoder.Token() // the bracket
	return err
}

func (p *jsonParser) items(v *value, depth int) error {
	v.kind, v.text = object, "an object"
	for p.decoder.More() {
		i := item{at: p.here()}
		key, err := p.decoder.Token()
		if err != nil {
			return err
		}
		i.key, _ = key.(string) // the decoder takes nothing else
		if i.value, err = p.value(depth + 1); err != nil {
			return err
		}
		v.items = append(v.items, i)
	}
	_, err := p.decoder.Token() // the brace
	return err
}
