package executions

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRingKeepsTheLastBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var all []byte
		for range rapid.IntRange(1, 20).Draw(t, "puts") {
			n := rapid.IntRange(0, 300_000).Draw(t, "n")
			p := make([]byte, n)
			for i := range p {
				p[i] = byte(len(all) + i*7)
			}
			r.put(p)
			all = append(all, p...)
		}
		require.Equal(t, int64(len(all)), r.end)
		require.LessOrEqual(t, len(r.buf), ringMax)
		got := make([]byte, r.end-r.start)
		require.Equal(t, len(got), r.get(r.start, got))
		require.Equal(t, string(all[r.start:]), string(got))
	})
}
