package executor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

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
		list, err := b.runners.Runners(t.Context(), "e")
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
