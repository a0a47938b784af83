package execution_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/exec/execution"
)

func withHook(command, url string) drover.ExecutionRequest {
	return drover.ExecutionRequest{Command: command, Webhook: url}
}

func TestWebhooksAreToldUntilTheyAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, execution.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 3", "https://example.org/third"))
		require.NoError(t, err)
		time.Sleep(time.Minute) // synctest's time
		synctest.Wait()
		require.Equal(t, 3, b.hooks.count())
		var told drover.Execution
		require.NoError(t, json.Unmarshal(b.hooks.last, &told))
		require.Equal(t, x.ID, told.ID)
		require.Equal(t, 3, told.Receipt.ExitCode)
	})
}

func TestWebhooksEndTrying(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]int{"https://example.org/down": 6, "https://example.org/forbidden": 1} {
		bubble(t, execution.Config{}, func(t *testing.T, b *bundle) {
			_, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 0", url))
			require.NoError(t, err)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Equal(t, want, b.hooks.count())
		})
	}
	bubble(t, execution.Config{}, func(t *testing.T, b *bundle) {
		_, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 0", "https://example.org/down"))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		b.stop() // waits for none of them
		for _, bad := range []string{"ftp://x/", "https:///", "http://[", "/x"} {
			_, err = b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 0", bad))
			require.Equal(t, drover.Invalid, drover.CodeOf(err), bad)
		}
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	bubble(t, execution.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.CreateRequest(t.Context(), b.runner.ID, drover.ExecutionRequest{Command: "sleep 1s; exit 4"})
		require.NoError(t, err)
		events, err := b.Events(t.Context(), 0)
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.Equal(t, execution.EventStarted, events[0].Type)
		require.Equal(t, []string{b.runner.ID, "e"}, events[0].FilterKeys)
		events, err = b.Events(t.Context(), events[0].Index+1) // waits
		require.NoError(t, err)
		require.Equal(t, execution.EventEnded, events[0].Type)
		ended := events[0].Payload["Execution"].(drover.Execution)
		require.Equal(t, x.ID, ended.ID)
		require.Equal(t, 4, ended.Receipt.ExitCode)
		_, err = b.Events(t.Context(), 1)
		require.Equal(t, drover.Gone, drover.CodeOf(err), "from before this process")
		_, err = b.Events(t.Context(), events[0].Index+2)
		require.Equal(t, drover.Gone, drover.CodeOf(err), "from after it")
	})
}

func TestLimitsOfTheClaimBindItsExecutions(t *testing.T) {
	t.Parallel()
	bubble(t, execution.Config{}, func(t *testing.T, b *bundle) {
		r, err := b.runners.Claim(t.Context(), drover.ClaimRequest{Environment: "e", Limits: drover.Limits{Wall: time.Second, MemoryMB: 64}})
		require.NoError(t, err)
		x, err := b.Start(t.Context(), r.ID, sh("sleep 1h"))
		require.NoError(t, err)
		require.Equal(t, drover.Limits{Wall: time.Second, MemoryMB: 64}, x.Info().Spec.Limits)
		receipt, err := x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, drover.CauseTimeout, receipt.Cause)
		over := sh("exit 0")
		over.Limits.MemoryMB = 65
		_, err = b.Start(t.Context(), r.ID, over)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	})
}
