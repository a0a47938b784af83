package httpapi

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/httpapi/runes"
)

// textReader reads JSON and fails at what encoding/json replaces in silence: bytes that are not UTF-8, and escaped halves
// of surrogate pairs. A command or a path must not become another one.
type textReader struct {
	r    io.Reader
	tail []byte // the beginning of a character

	escape int  // bytes of an escape read so far: its \, the u, digits
	code   rune // of its digits
	high   bool // the first half of a pair came just before
}

var errNotText = errors.New("it is not UTF-8 text without halves of surrogate pairs")

// Read implements io.Reader.
func (t *textReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	whole, tail := runes.Split(t.tail, p[:n])
	t.tail = tail
	if !utf8.Valid(whole) || len(tail) > 0 && errors.Is(err, io.EOF) || !t.paired(p[:n]) {
		return 0, errNotText
	}
	return n, err
}

// paired reports whether no surrogate is escaped alone, as far as was read.
func (t *textReader) paired(p []byte) bool {
	if t.escape == 0 && !t.high && bytes.IndexByte(p, '\\') < 0 {
		return true
	}
	for _, c := range p {
		switch {
		case t.escape == 0 && c == '\\':
			t.escape, t.code = 1, 0
		case t.escape == 1 && c == 'u':
			t.escape = 2
		case t.escape < 2:
			if t.escape = 0; t.high {
				return false
			}
		default:
			if t.code = t.code<<4 | hex(c); t.escape < 5 {
				t.escape++
				continue
			}
			t.escape = 0
			low := t.code >= 0xdc00 && t.code < 0xe000
			if low != t.high {
				return false
			}
			t.high = t.code >= 0xd800 && t.code < 0xdc00
		}
	}
	return true
}

// hex is a digit's value; of what is none the decoder tells.
func hex(c byte) rune {
	switch {
	case c >= 'a':
		return rune(c-'a') + 10
	case c >= 'A':
		return rune(c-'A') + 10
	}
	return rune(c - '0')
}
