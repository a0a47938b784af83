package telemetry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPercentFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 3200, 8 << 20: 400, 64 << 20: 200, 600 << 20: 100, 2 << 30: 50} {
		require.Equal(t, want, percentFor(live), "%d", live)
	}
}
