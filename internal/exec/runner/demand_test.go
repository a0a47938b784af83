package runner_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/runner"
)

func demand(c *exectest.Control, name string) int {
	return c.Snapshot().Job("default", environment.JobOf(name).ID).TaskGroups[0].Pool.Demand
}

// settle waits until what happened is recorded, under load too.
func settle() {
	time.Sleep(50 * time.Millisecond) // simulated
	synctest.Wait()
}

func TestAWaitingClaimIsServedWhereThePoolKeepsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 0)
		var claims sync.WaitGroup
		for range 20 {
			claims.Go(func() { // ends when it was served
				_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
				require.NoError(t, err)
			})
		}
		claims.Wait()
		settle()
		require.Zero(t, demand(c, "python"))
		status, err := s.PoolStatus(t.Context(), "python")
		require.NoError(t, err)
		require.Equal(t, execution.PoolStatus{Environment: "python", Claimed: 20}, status)
		stop()
	})
}

func TestDemandEndsWithTheWaitAndOutlivesAPut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		gone := make(chan error, 1)
		go func() { // ends when its wait is over
			_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
			gone <- err
		}()
		synctest.Wait()
		require.Equal(t, 1, demand(c, "python"))
		_, err := s.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "host", Env: map[string]string{"A": "b"}})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, demand(c, "python"), "a registration resets it, and it is recorded again")
		require.Equal(t, drover.Exhausted, drover.CodeOf(<-gone))
		synctest.Wait()
		require.Zero(t, demand(c, "python"))
		stop()
	})
}

func TestExtendHoldsAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		cfg := journalIn(t.TempDir())
		s, stop := exectest.Start(t, c, cfg)
		exectest.Put(t, s, "python", 2)
		synctest.Wait()
		recorded, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", IdleTimeout: time.Minute})
		require.NoError(t, err)
		written, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", IdleTimeout: time.Minute})
		require.NoError(t, err)
		synctest.Wait()
		_, err = s.Extend(t.Context(), recorded.ID, time.Hour)
		require.NoError(t, err)
		settle()
		require.Equal(t, time.Hour, c.Snapshot().Allocation(recorded.AllocID).Claim.IdleTimeout)
		c.Fail(drover.Errorf(drover.Unavailable, "no leader"))
		_, err = s.Extend(t.Context(), written.ID, 2*time.Hour)
		require.NoError(t, err)
		stop()
		c.Fail(nil)
		s, stop = exectest.Start(t, c, cfg)
		for id, want := range map[string]time.Duration{recorded.ID: time.Hour, written.ID: 2 * time.Hour} {
			r, err := s.Runner(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, want, r.IdleTimeout)
		}
		synctest.Wait()
		require.Equal(t, 2*time.Hour, c.Snapshot().Allocation(written.AllocID).Claim.IdleTimeout)
		stop()
	})
}

func TestLimitsOfAClaimAreCheckedAndKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		_, err := s.PutEnvironment(
			t.Context(), execution.Environment{ID: "python", Image: "host", PoolSize: 1, CPU: 500, MemoryMaxMB: 100, PidsLimit: 10},
		)
		require.NoError(t, err)
		synctest.Wait()
		for _, l := range []drover.Limits{{MemoryMB: 101}, {Pids: 11}, {CPUMHz: 501}, {Wall: -1}, {OutputBytes: 1 << 60}} {
			_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Limits: l})
			require.Equal(t, drover.Invalid, drover.CodeOf(err), "%+v", l)
		}
		r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Limits: drover.Limits{MemoryMB: 50}})
		require.NoError(t, err)
		require.Equal(t, &drover.Limits{MemoryMB: 50}, r.Limits)
		synctest.Wait()
		require.Equal(t, 50, c.Snapshot().Allocation(r.AllocID).Claim.Limits.MemoryMB)
		stop()
	})
}

func TestAwaitPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 3)
		status, full, err := s.AwaitPool(t.Context(), "python", time.Minute)
		require.NoError(t, err)
		require.True(t, full)
		require.Equal(t, 3, status.Warm)
		puts := c.Registrations()
		exectest.Put(t, s, "python", 3)
		require.Equal(t, puts, c.Registrations(), "an unchanged put changes nothing")
		exectest.Put(t, s, "python", 1)
		synctest.Wait()
		status, _, err = s.AwaitPool(t.Context(), "python", 0)
		require.NoError(t, err)
		require.Equal(t, 1, status.Warm, "shrinking shrinks")

		c.StopRefill()
		exectest.Put(t, s, "python", 2)
		began := time.Now()
		_, full, err = s.AwaitPool(t.Context(), "python", time.Minute)
		require.NoError(t, err)
		require.False(t, full)
		require.Equal(t, time.Minute, time.Since(began))
		_, _, err = s.AwaitPool(t.Context(), "nothing", time.Minute)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		stop()
	})
}

// TestALargePoolIsRefilledInALull: claims that come together are recorded together, soon; a small pool's at once.
func TestALargePoolIsRefilledInALull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "large", 40)
		exectest.Put(t, s, "small", 2)
		synctest.Wait()
		before := c.ClaimEntries()
		for range 30 {
			_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "large"})
			require.NoError(t, err)
			time.Sleep(10 * time.Millisecond) // synctest's time
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		require.LessOrEqual(t, c.ClaimEntries()-before, 4)
		status, err := s.PoolStatus(t.Context(), "large")
		require.NoError(t, err)
		require.Equal(t, 40, status.Warm)

		before = c.ClaimEntries()
		_, err = s.Claim(t.Context(), execution.ClaimRequest{Environment: "small"})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, c.ClaimEntries()-before)
		stop()
	})
}
