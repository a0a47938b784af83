package runner_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
)

// Of many claims at once as many get a runner as the quota allows, not one less; the others are told at once, and cost no runner.
func TestAQuotaBoundsClaimedRunners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, journalIn(t.TempDir()))
		exectest.Put(t, s, "python", 3)
		synctest.Wait()
		c.Limit(7)
		var mu sync.Mutex
		var got []execution.Runner
		var claimers sync.WaitGroup
		for range 30 {
			claimers.Go(func() { // ends when it was answered
				r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got = append(got, r)
					return
				}
				if drover.CodeOf(err) != drover.Exhausted || err.Error() == "" {
					t.Error(err)
				}
			})
		}
		claimers.Wait()
		require.Len(t, got, 7)
		require.Zero(t, c.Refused(), "no runner was handed out for nothing")
		_, err := s.Claim(t.Context(), claimReq("python"))
		require.ErrorContains(t, err, `quota "q": runners exhausted (1 needed > 0 left of 7)`)
		for _, r := range got {
			require.NotNil(t, c.Snapshot().Allocation(r.AllocID).Claim, "it is in the log")
		}

		require.NoError(t, s.Release(t.Context(), got[0].ID))
		settle()
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err, "one was given back")
		c.Limit(0)
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		stop()
	})
}

// What the log refuses, as another server was first, is told as such, and its runner ends.
func TestAClaimThatTheLogRefusesByAQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, journalIn(t.TempDir()))
		exectest.Put(t, s, "python", 1)
		synctest.Wait()
		c.Limit(1)
		c.Fail(drover.Errorf(drover.Exhausted, `quota "q": runners exhausted (1 needed > 0 left of 1)`))
		_, err := s.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		require.ErrorContains(t, err, `quota "q"`)
		c.Fail(nil)
		settle()
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		stop()
	})
}
