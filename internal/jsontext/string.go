package jsontext

import "unicode/utf8"

// hexDigits are lower case, as encoding/json writes them.
const hexDigits = "0123456789abcdef"

// AppendString appends the text as a JSON string, byte for byte as encoding/json writes it without escaping HTML.
func AppendString[T ~string | ~[]byte](to []byte, text T) []byte {
	to = append(to, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		to = append(to, text[start:i]...)
		to = appendEscape(to, r, size)
		i += size
		start = i
	}
	return append(append(to, text[start:]...), '"')
}

// appendEscape appends the escape of one character. RuneError of size 1 stands for a byte that is no UTF-8, which
// is replaced; of size 3 it is the character U+FFFD itself. The last form has four digits: no character beyond
// U+FFFF gets here.
func appendEscape(to []byte, r rune, size int) []byte {
	switch r {
	case '"', '\\':
		return append(to, '\\', byte(r))
	case '\b':
		return append(to, '\\', 'b')
	case '\f':
		return append(to, '\\', 'f')
	case '\n':
		return append(to, '\\', 'n')
	case '\r':
		return append(to, '\\', 'r')
	case '\t':
		return append(to, '\\', 't')
	case utf8.RuneError:
		if size == 1 {
			return append(to, `\ufffd`...)
		}
	}
	return append(to, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
