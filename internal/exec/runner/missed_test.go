package runner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/runner"
)

// deaf hears nothing until it is told that it missed something.
type deaf struct {
	runner.Subscription
	missed <-chan struct{}
}

func (d deaf) Next(ctx context.Context) (drover.Events, error) {
	select {
	case <-d.missed:
		return drover.Events{}, drover.Errorf(drover.Gone, "events were missed")
	case <-ctx.Done():
		return drover.Events{}, ctx.Err()
	}
}

// A runner that became warm while events were missed is handed out too.
func TestMissedEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		c.StopRefill()
		deps, missed := c.Deps(), make(chan struct{})
		subscribe, first := deps.Subscribe, true
		deps.Subscribe = func(index uint64) (runner.Subscription, error) {
			sub, err := subscribe(index)
			if first {
				first = false
				return deaf{sub, missed}, err
			}
			return sub, err
		}
		s, err := runner.New(runner.Config{}, deps)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = s.Run(ctx) }) // ends with cancel
		exectest.Put(t, s, "python", 1)
		_, err = s.Claim(ctx, claimReq("python"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err), "it knows the environment now")
		c.Add("python")
		synctest.Wait()
		_, err = s.Claim(ctx, claimReq("python"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		close(missed)
		synctest.Wait()
		_, err = s.Claim(ctx, claimReq("python"))
		require.NoError(t, err)
		cancel()
		run.Wait()
	})
}

// What claims carry is bounded, and large ones do not go into one entry of the log together.
func TestLargeClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 100)
		synctest.Wait()
		_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Labels: map[string]string{"a": strings.Repeat("x", 20<<10)}})
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
		before := c.ClaimEntries()
		for range 100 {
			_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Env: map[string]string{"A": strings.Repeat("x", 100<<10)}})
			require.NoError(t, err)
		}
		time.Sleep(time.Second) // synctest's time: recording waits for a lull
		synctest.Wait()
		require.GreaterOrEqual(t, c.ClaimEntries()-before, 3, "10 MB, 4 at once")
		stop()
	})
}
