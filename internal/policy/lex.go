package policy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mark is what kind of token it is: one of these, or the sign that it is.
type mark byte

const (
	endOfRules mark = 0
	ident      mark = 'i' // a name without quotes
	quoted     mark = 'q' // a text in quotes; the token's text is without them
	number     mark = 'n'
	broken     mark = '!' // the token's text says what is wrong
)

// token is a word or a sign of the text.
type token struct {
	mark mark
	text string
	at   place
}

// lexer cuts a text into tokens. It skips spaces, line ends and comments.
type lexer struct {
	rest string // what was not read
	at   place  // of its first character
}

// advance goes on by n bytes.
func (l *lexer) advance(n int) {
	for _, r := range l.rest[:n] {
		l.at.column++
		if r == '\n' {
			l.at = place{l.at.line + 1, 1}
		}
	}
	l.rest = l.rest[n:]
}

// space skips what means nothing, and reports whether a comment has no end.
func (l *lexer) space() (endless bool) {
	for {
		n := len(l.rest) - len(strings.TrimLeft(l.rest, " \t\r\n"))
		switch after := l.rest[n:]; {
		case strings.HasPrefix(after, "#"), strings.HasPrefix(after, "//"):
			if n = strings.IndexByte(after, '\n'); n < 0 {
				n = len(after)
			}
			n += len(l.rest) - len(after)
		case strings.HasPrefix(after, "/*"):
			end := strings.Index(after[2:], "*/")
			if end < 0 {
				l.advance(n)
				return true
			}
			n += 2 + end + 2
		default:
			l.advance(n)
			return false
		}
		l.advance(n)
	}
}

// word reports whether the byte belongs to a name without quotes, behind its first one, or to a number.
func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// next reads a token.
func (l *lexer) next() token {
	if l.space() {
		return token{broken, "a comment needs its \"*/\"", l.at}
	}
	t := token{at: l.at}
	if l.rest == "" {
		return t
	}
	c := l.rest[0]
	switch {
	case c == '"':
		return l.quoted()
	case word(c) && c != '-' && c != '.':
		n := 1
		for n < len(l.rest) && word(l.rest[n]) {
			n++
		}
		t.mark, t.text = ident, l.rest[:n]
		if c <= '9' {
			t.mark = number
		}
		l.advance(n)
	default:
		_, n := utf8.DecodeRuneInString(l.rest)
		t.mark, t.text = mark(c), l.rest[:n]
		if strings.IndexByte("{}[]=,", c) < 0 {
			t.mark, t.text = broken, fmt.Sprintf("%q is not expected here", t.text)
		}
		l.advance(n)
	}
	return t
}

// quoted reads a text in quotes, with the escapes that HCL and JSON have in common, and without templates.
func (l *lexer) quoted() token {
	t := token{mark: quoted, at: l.at}
	end := 1
	for end < len(l.rest) && l.rest[end] != '"' && l.rest[end] != '\n' {
		if l.rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(l.rest) || l.rest[end] != '"' {
		t.mark, t.text = broken, "the text needs its \"\\\"\" in the same line"
		return t
	}
	t.text = l.rest[1:end]
	switch {
	case !utf8.ValidString(t.text):
		t.mark, t.text = broken, "the text is not UTF-8"
	case strings.Contains(t.text, "${"), strings.Contains(t.text, "%{"):
		t.mark, t.text = broken, "rules have no templates"
	case strings.Contains(t.text, `\`):
		var err error
		if t.text, err = strconv.Unquote(l.rest[:end+1]); err != nil {
			t.mark, t.text = broken, "the text has an escape that is none"
		}
	}
	l.advance(end + 1)
	return t
}
