package docker

import (
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func TestTheDaemonsSampleOnBothVersions(t *testing.T) {
	t.Parallel()
	for name, stats := range map[string]map[string]uint64{
		"v1": {"total_rss": 100, "total_cache": 60, "total_shmem": 10, "total_mapped_file": 7, "total_swap": 3, "rss": 1, "cache": 1},
		"v2": {"anon": 100, "file": 60, "shmem": 10, "file_mapped": 7, "inactive_file": 20},
	} {
		u := fromDaemon(&container.StatsResponse{
			CPUStats:    container.CPUStats{CPUUsage: container.CPUUsage{TotalUsage: 30, UsageInUsermode: 20, UsageInKernelmode: 10}},
			MemoryStats: container.MemoryStats{Usage: 200, MaxUsage: 300, Stats: stats},
		})
		require.Equal(t, []int64{100, 60, 7, 150, 200, 300}, []int64{u.RSS, u.Cache, u.MappedFile, u.Memory, u.MemoryRaw, u.MemoryPeak}, name)
		require.Equal(t, []int64{30, 20, 10}, []int64{int64(u.CPUTotal), int64(u.CPUUser), int64(u.CPUSystem)}, name)
	}
}

// TestUsageWithoutCgroupFiles asks the daemon, and agrees with the files.
func TestUsageWithoutCgroupFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	r := drivertest.Root(
		t,
		h,
		"head -c 30000000 /dev/zero > /big; cat /big /big > /dev/null; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done",
	)
	require.Zero(t, r.Receipt.ExitCode, r.Err)
	files, err := b.used(t.Context(), h.box)
	require.NoError(t, err)
	blind := *h.box
	blind.usage = nil
	asked, err := b.used(t.Context(), &blind)
	require.NoError(t, err)
	require.InDelta(t, files.CPUTotal.Seconds(), asked.CPUTotal.Seconds(), 0.2)
	require.InDelta(t, files.Memory, asked.Memory, 5<<20)
	require.InDelta(t, files.RSS, asked.RSS, 5<<20)
	require.Greater(t, asked.Cache, int64(25_000_000))
	require.Less(t, asked.Memory, int64(25_000_000), "cache is not use")
	require.NoError(t, h.Stop(t.Context(), "", 0))
	_, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the daemon notices the end a moment later
		_, err = b.used(t.Context(), &blind)
		return err != nil
	}, patience, tick)
	require.ErrorIs(t, err, driver.ErrGone)
}
