package poseidon

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzAppendQuoted(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\r\t\b\f\x00\x1f\x7f", "<&>ä€😀\u2028\u2029\ufffd", "\xff\xc3", "end\xe2\x82"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(string(text)))
		require.Equal(t, strings.TrimSuffix(want.String(), "\n"), string(appendQuoted(nil, text)))
	})
}

func BenchmarkMessage(b *testing.B) {
	data := []byte(strings.Repeat("a line of output, as programs print it ä\r\n", 700))
	var m message
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		m.text("stdout", data)
	}
}
