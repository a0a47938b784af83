package execution_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/execution"
)

// The runner of a run went on for ever when the server was killed before it released it.
func TestTheRunnerOfARunEndsByItselfButNotUnderIt(t *testing.T) {
	t.Parallel()
	bubble(t, execution.Config{}, func(t *testing.T, b *bundle) {
		done := make(chan drover.RunResult)
		go func() { // ends with the run
			result, err := b.RunOnce(t.Context(), drover.RunRequest{Environment: "e", ExecutionRequest: drover.ExecutionRequest{Command: "sleep 5m"}})
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
			if r.State == drover.RunnerBusy {
				require.Equal(t, time.Minute, r.IdleTimeout)
				busy++
			}
		}
		require.Equal(t, 1, busy)
		result := <-done
		require.Empty(t, result.Receipt.Error)
		require.Equal(t, drover.CauseExited, result.Receipt.Cause)
	})
}
