package runner_test

import (
	"context"
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

// What is about to be stopped is not handed out, and what was handed out can be seen as claimed before it is stopped.
func TestWithhold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 20)
		exectest.AwaitWarm(t, s, 20)
		c.StopRefill()
		var all []string
		for a := range c.Snapshot().AllocationsByJob("default", environment.JobOf("python").ID) {
			all = append(all, a.ID)
		}
		mine, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python"})
		require.NoError(t, err)
		require.Nil(t, c.Snapshot().Allocation(mine.AllocID).Claim, "a large pool: recorded in a lull only")

		giveBack := s.Withhold(t.Context(), all)
		require.NotNil(t, c.Snapshot().Allocation(mine.AllocID).Claim)
		_, err = s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1})
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))

		waited := make(chan execution.Runner, 1)
		go func() { // ends when one is given back
			r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
			require.NoError(t, err)
			waited <- r
		}()
		synctest.Wait()
		for _, id := range all[2:] {
			if id != mine.AllocID {
				c.Update(id, func(a *drover.Allocation) { a.DesiredStatus = drover.AllocDesiredStop })
			}
		}
		giveBack()
		require.Contains(t, all[:2], (<-waited).AllocID)
		_, err = s.Runner(t.Context(), mine.ID)
		require.NoError(t, err)
		stop()
	})
}

// A node that cannot record claims does not keep runners from being stopped for ever.
func TestWithholdEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 1)
		exectest.AwaitWarm(t, s, 1)
		c.Fail(drover.Errorf(drover.Unavailable, "no leader"))
		r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python"})
		require.NoError(t, err)
		begin := time.Now()
		s.Withhold(t.Context(), []string{r.AllocID, "unknown"})()
		require.Less(t, time.Since(begin), 10*time.Second)
		stop()
	})
}

// A runner that was given back may be stopped at once, though neither its claim nor its release can be recorded: nobody has it.
func TestWithholdOfWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 1)
		exectest.AwaitWarm(t, s, 1)
		c.Fail(drover.Errorf(drover.Unavailable, "no leader"))
		r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python"})
		require.NoError(t, err)
		require.True(t, s.Pending([]string{r.AllocID}))
		require.NoError(t, s.Release(t.Context(), r.ID))
		begin := time.Now()
		giveBack := s.Withhold(t.Context(), []string{r.AllocID})
		require.Zero(t, time.Since(begin))
		require.False(t, s.Pending([]string{r.AllocID}))
		giveBack()
		_, err = s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1})
		require.Equal(t, drover.Exhausted, drover.CodeOf(err), "it is never warm again")
		stop()
	})
}

// Whoever left while waiting gets no runner: nobody would ever give it back.
func TestAClaimerWhoLeftGetsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 1)
		exectest.AwaitWarm(t, s, 1)
		gone, leave := context.WithCancel(t.Context())
		leave()
		for range 100 {
			_, err := s.Claim(gone, execution.ClaimRequest{Environment: "python", Wait: time.Minute})
			require.Equal(t, drover.Canceled, drover.CodeOf(err))
			synctest.Wait()
		}
		status, err := s.PoolStatus(t.Context(), "python")
		require.NoError(t, err)
		require.Zero(t, status.Claimed)
		require.Equal(t, 1, status.Warm)
		stop()
	})
}
