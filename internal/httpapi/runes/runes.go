package runes

import (
	"bytes"
	"unicode/utf8"
)

// Split returns what can be sent of tail and data together, and the beginning of a character at its end that must wait
// for its rest: the next call's tail. Bytes that are no UTF-8 anyway are not held back. It changes neither tail nor
// data; rest is a copy.
func Split(tail, data []byte) (whole, rest []byte) {
	if len(tail) > 0 {
		data = append(bytes.Clone(tail), data...)
	}
	for back := 1; back <= min(utf8.UTFMax-1, len(data)); back++ {
		c := data[len(data)-back]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-back:]) {
			cut := len(data) - back
			return data[:cut], bytes.Clone(data[cut:])
		}
		break
	}
	return data, nil
}
