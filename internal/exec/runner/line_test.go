package runner

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// A line written by hand is read as what encoding/json writes is; a field that Line gets is made up by rapid too, and is missed here.
func TestALineIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Make[Line]().Draw(t, "line")
		raw, err := line.append(nil)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "\n", "it would be two lines")
		standard, err := json.Marshal(line)
		require.NoError(t, err)
		var got, want Line
		require.NoError(t, json.Unmarshal(raw, &got))
		require.NoError(t, json.Unmarshal(standard, &want))
		require.Equal(t, want, got)
	})
}

// BenchmarkLine is what a claim's line costs, and what it would by reflection.
func BenchmarkLine(b *testing.B) {
	line := Line{Claim: &AllocClaim{AllocID: "5b8a2c0e-4f8e-4a0e-9d5e-0c1f6a2b3c4d", Claim: drover.Claim{
		RunnerID: "python-5b8a2c0e-4f8e-4a0e-9d5e-0c1f6a2b3c4d", ClaimedAt: 1_795_788_000_000_000_000, IdleTimeout: time.Hour,
	}}}
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = line.append(make([]byte, 0, lineSize))
		}
	})
	b.Run("by reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(line)
		}
	})
}
