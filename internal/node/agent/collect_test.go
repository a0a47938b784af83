package agent

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// A disk of which much is kept back is not full. Counted against its whole size this one would be at 80 %, and the
// folders of tasks would be removed as soon as they ended.
func TestFullness(t *testing.T) {
	t.Parallel()
	bytes, inodes := fullness(&unix.Statfs_t{Blocks: 66_053_021, Bfree: 55_022_754, Bavail: 12_845_049, Files: 1000, Ffree: 250})
	require.InDelta(t, 46.2, bytes, 0.1)
	require.InDelta(t, 75, inodes, 0.01)
	bytes, inodes = fullness(&unix.Statfs_t{Blocks: 100, Bfree: 10, Bavail: 0})
	require.InDelta(t, 100, bytes, 0)
	require.Zero(t, inodes)
	bytes, _ = fullness(&unix.Statfs_t{})
	require.Zero(t, bytes, "no disk at all")
}

// TestUsedRunnersAreForgotten counts what hundreds of cycles leave on the node: nothing, though fewer folders than that
// would be kept.
func TestUsedRunnersAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.start()
		var claimed, stopped []*drover.Allocation
		for i := range 40 {
			a := b.alloc(i, drover.JobTypeService)
			a.Job.TaskGroups[0].Pool = &drover.WarmPool{Size: 40}
			b.control.assign(a)
			c := *a
			c.Claim, c.AllocModifyIndex = &drover.Claim{RunnerID: "r"}, 2
			s := c
			if i%3 == 2 { // released before the claim was recorded
				s.Claim = nil
			}
			s.DesiredStatus, s.AllocModifyIndex = drover.AllocDesiredStop, 3
			claimed, stopped = append(claimed, &c), append(stopped, &s)
		}
		sleep(time.Second)
		b.control.assign(claimed...)
		sleep(time.Second)
		b.control.assign(stopped[1:]...)
		b.world.Running("t0").End(driver.Exit{Code: 1}) // this one failed: somebody may ask why
		sleep(3 * time.Second)
		b.control.assign(b.alloc(100, drover.JobTypeBatch))
		sleep(5 * time.Second)
		require.Equal(t, drover.AllocClientFailed, b.control.alloc(claimed[0].ID).ClientStatus)
		b.agent.mu.Lock()
		defer b.agent.mu.Unlock()
		require.Len(t, b.agent.allocs, 2)
		require.Contains(t, b.agent.allocs, claimed[0].ID)
		records, err := b.state.Load()
		require.NoError(t, err)
		require.Len(t, records, 2)
	})
}

// TestAnAgentThatEndsCollectsNothing: after a storm there are thousands of folders, and who stops an agent waits for it.
func TestAnAgentThatEndsCollectsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.cfg.GC = GCConfig{MaxAllocs: 1, MinAge: 90 * time.Second, DiskPercent: 101, InodePercent: 101}
		b.world.Instant = true
		b.start()
		for i := range 3 {
			b.control.assign(b.alloc(i, drover.JobTypeBatch))
		}
		kept := func() int {
			records, err := b.state.Load()
			require.NoError(t, err)
			return len(records)
		}
		sleep(100 * time.Second) // the look of the first minute found them too young
		b.leave()
		require.Equal(t, 3, kept(), "when the loop waits")
		ended, end := context.WithCancel(t.Context())
		end()
		b.agent.collectOnce(ended)
		require.Equal(t, 3, kept(), "when it collects")
		b.start()
		sleep(2 * time.Minute)
		require.Equal(t, 1, kept(), "the next agent does it")
	})
}
