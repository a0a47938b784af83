package cgroup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// BenchmarkUsage is one sample of a group; a thousand tasks need a thousand a second.
func BenchmarkUsage(b *testing.B) {
	m, err := New(Config{Parent: drivertest.GroupParent(b)})
	require.NoError(b, err)
	g, err := m.Create("sampled", Limits{MemoryMax: 64 << 20}, 0)
	require.NoError(b, err)
	cpu := func() time.Duration {
		var r unix.Rusage
		require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &r))
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	before := cpu()
	for b.Loop() {
		_, err := g.Usage()
		require.NoError(b, err)
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N)/1e3, "cpu-µs/op")
	require.NoError(b, g.Remove(b.Context(), clock.Wall{}))
}
