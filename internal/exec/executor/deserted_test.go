package executor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
)

// A server was stopped for some seconds and went on. Its clients had left for the one that took over, and it killed what they read there,
// as nobody read it here.
func TestAServerWhoseLeasesDoNotHoldKillsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		deps := c.Deps()
		var holds atomic.Bool
		holds.Store(true)
		deps.Holds = holds.Load
		runners, err := runner.New(runner.Config{Lease: 2}, deps)
		require.NoError(t, err)
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- runners.Run(ctx) }() // ends with ctx
		exectest.Put(t, runners, "e", 0)
		c.StopRefill()
		c.AddLeased("e", 2)
		synctest.Wait()
		r, err := runners.Claim(t.Context(), execution.ClaimRequest{Environment: "e", IdleTimeout: -1})
		require.NoError(t, err)
		b := &bundle{control: c, runners: runners, runner: r, hooks: &hooks{}, told: &told{}}
		b.start(t, executor.Config{})

		x, err := b.Start(t.Context(), r.ID, sh("sleep 1h"))
		require.NoError(t, err)
		reader := x.Attach(execution.Offsets{})
		holds.Store(false)
		require.NoError(t, reader.Close())
		time.Sleep(time.Minute)
		require.True(t, x.Info().Running)
		again := x.Attach(execution.Offsets{})
		holds.Store(true)
		time.Sleep(time.Minute)
		require.True(t, x.Info().Running, "somebody is there")
		require.NoError(t, again.Close())
		time.Sleep(2 * time.Second)
		require.Equal(t, execution.CauseKilled, x.Info().Receipt.Cause)
		b.stop()
		end()
		require.NoError(t, <-done)
	})
}
