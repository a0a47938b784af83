package poseidon

import (
	"strings"
	"testing"
)

func BenchmarkMessage(b *testing.B) {
	data := []byte(strings.Repeat("a line of output, as programs print it ä\r\n", 700))
	var m message
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		m.text("stdout", data)
	}
}
