package runes

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPiecesOfValidTextAreValidAndComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.String().Draw(t, "text"))
		var tail, got []byte
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			var whole []byte
			whole, tail = Split(tail, rest[:n])
			require.True(t, utf8.Valid(whole))
			require.Less(t, len(tail), utf8.UTFMax)
			got, rest = append(got, whole...), rest[n:]
		}
		require.Empty(t, tail)
		require.Equal(t, string(text), string(got))
	})
}

func TestNoByteIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var tail, got, want []byte
		for _, piece := range rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "pieces") {
			var whole []byte
			whole, tail = Split(tail, piece)
			got, want = append(got, whole...), append(want, piece...)
		}
		require.Equal(t, string(want), string(append(got, tail...)))
	})
}
