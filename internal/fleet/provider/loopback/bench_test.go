package loopback_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider/loopback"
)

// BenchmarkCreate64 makes the machines of a burst, one after the other, and destroys them.
func BenchmarkCreate64(b *testing.B) {
	p, err := loopback.New(loopback.Config{
		Dir: b.TempDir(), Owner: "me", Command: []string{"/bin/sh", "-c", "sleep 1000 & wait"},
		StopTimeout: -1,
	}, clock.Wall{})
	require.NoError(b, err)
	for round := 0; b.Loop(); round++ {
		var ids []string
		for n := range 64 {
			made, err := p.Create(b.Context(), request(fmt.Sprint(round, "-", n), offering("small")))
			require.NoError(b, err)
			ids = append(ids, made[0].ID)
		}
		b.StopTimer()
		for _, id := range ids {
			require.NoError(b, p.Destroy(b.Context(), id))
		}
		b.StartTimer()
	}
}
