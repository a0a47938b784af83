package executor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/id"
)

// A run with a key was begun by a server that is gone. The next one finds its runner by the key, and runs there what was not started; what
// was is not run again, and not ended.
func TestARunIsBegunOnce(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		begin := func(key string) (execution.Once, execution.Runner) {
			once := execution.Once{ID: id.Named(key), Key: key, Request: "r"}
			r, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Once: once})
			require.NoError(t, err)
			time.Sleep(time.Second)
			return once, r
		}
		once, claimed := begin("one")
		result, err := b.RunOnce(t.Context(), execution.RunRequest{Environment: "e", Request: execution.Request{Command: "echo x", Once: once}})
		require.NoError(t, err)
		require.Equal(t, []string{claimed.ID, "x\n"}, []string{result.RunnerID, result.Stdout})
		_, err = b.runners.Runner(t.Context(), claimed.ID)
		require.Equal(t, drover.Gone, drover.CodeOf(err), "it was released")

		once, claimed = begin("two")
		spec := sh("sleep 10s")
		spec.ID = once.ID
		_, err = b.control.Node.StartExecution(t.Context(), claimed.AllocID, "", spec)
		require.NoError(t, err)
		_, err = b.RunOnce(t.Context(), execution.RunRequest{Environment: "e", Request: execution.Request{Command: "echo x", Once: once}})
		require.Equal(t, drover.Conflict, drover.CodeOf(err))
		require.ErrorContains(t, err, once.ID)
		_, err = b.runners.Runner(t.Context(), claimed.ID)
		require.NoError(t, err)
		b.control.Node.Break(claimed.AllocID)
	})
}

// The runner of a run went on for ever when the server was killed before it released it.
func TestTheRunnerOfARunEndsByItselfButNotUnderIt(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		done := make(chan execution.RunResult)
		go func() { // ends with the run
			result, err := b.RunOnce(t.Context(), execution.RunRequest{Environment: "e", Request: execution.Request{Command: "sleep 5m"}})
			if err != nil {
				result.Receipt.Error = err.Error()
			}
			done <- result
		}()
		synctest.Wait()
		list, err := b.runners.Runners(t.Context(), "default", "e")
		require.NoError(t, err)
		busy := 0
		for _, r := range list {
			if r.State == execution.RunnerBusy {
				require.Equal(t, time.Minute, r.IdleTimeout)
				busy++
			}
		}
		require.Equal(t, 1, busy)
		result := <-done
		require.Empty(t, result.Receipt.Error)
		require.Equal(t, execution.CauseExited, result.Receipt.Cause)
	})
}
