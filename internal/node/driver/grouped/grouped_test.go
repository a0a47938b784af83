package grouped_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	l := grouped.Limits(&driver.Spec{MemoryMB: 10, CPUMHz: 500, Cores: []uint16{1}}, 0.5)
	require.Equal(t, cgroup.Limits{MemoryMax: 10 << 20, CPUShares: 500, Cores: []uint16{1}, CPUQuota: 0.5}, l)
	l = grouped.Limits(&driver.Spec{MemoryMB: 10, MemoryMaxMB: 30}, 0)
	require.Equal(t, cgroup.Limits{MemoryMax: 30 << 20, MemoryLow: 10 << 20}, l)
	l = grouped.Limits(&driver.Spec{MemoryMB: 10, MemoryMaxMB: -1}, 0)
	require.Equal(t, cgroup.Limits{MemoryLow: 10 << 20}, l)
}

func TestMeterTellsPercentOfTheTimeBetween(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	m := grouped.Meter{Started: start, CoreMHz: 2000}
	first := m.Sample(start.Add(2*time.Second), cgroup.Usage{CPUTotal: time.Second, CPUUser: time.Second, Memory: 5, MemoryRaw: 9, Cache: 4})
	require.InDelta(t, 50, first.ResourceUsage.CpuStats.Percent, 0.001)
	require.InDelta(t, 1000, first.ResourceUsage.CpuStats.TotalTicks, 0.001)
	require.Equal(t, uint64(5), first.ResourceUsage.MemoryStats.Usage, "cache is not use")
	require.Equal(t, start.Add(2*time.Second).UnixNano(), first.Timestamp)
	next := m.Sample(start.Add(3*time.Second), cgroup.Usage{CPUTotal: time.Second, CPUUser: time.Second})
	require.Zero(t, next.ResourceUsage.CpuStats.Percent)
}
