package executor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

func withHook(command, url string) execution.Request {
	return execution.Request{Command: command, Webhook: url}
}

func TestWebhooksAreToldUntilTheyAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 3", "https://example.org/third"))
		require.NoError(t, err)
		time.Sleep(time.Minute) // synctest's time
		synctest.Wait()
		require.Equal(t, 3, b.hooks.count())
		var told execution.Execution
		require.NoError(t, json.Unmarshal(b.hooks.last, &told))
		require.Equal(t, x.ID, told.ID)
		require.Equal(t, 3, told.Receipt.ExitCode)
	})
}

func TestWebhooksEndTrying(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]int{"https://example.org/down": 6, "https://example.org/forbidden": 1} {
		bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
			_, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 0", url))
			require.NoError(t, err)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Equal(t, want, b.hooks.count())
		})
	}
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
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

// One user's receivers take requests and never answer them.
func TestHangingWebhooksLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.hooks.hold = make(chan struct{})
		hang := func(url string, n int) {
			for range n {
				_, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 0", url))
				require.NoError(t, err)
			}
			synctest.Wait()
		}
		hang("https://slow.example.org/hang", 60)
		require.Equal(t, 50, b.hooks.count(), "of one host")
		for i := range 6 {
			hang(fmt.Sprintf("https://slow%d.example.org/hang", i), 60)
		}
		require.Equal(t, 250, b.hooks.count(), "of one environment, under many names")
		_, err := b.runners.PutEnvironment(t.Context(), execution.Environment{ID: "f", Image: "host", PoolSize: 1})
		require.NoError(t, err)
		other, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: "f"})
		require.NoError(t, err)
		_, err = b.CreateRequest(t.Context(), other.ID, withHook("exit 0", "https://quick.example.org/"))
		require.NoError(t, err)
		synctest.Wait()
		require.Contains(t, b.hooks.called(), "https://quick.example.org/")
		hang("https://slow.example.org/hang", 2_000-420)
		_, err = b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 0", "https://quick.example.org/"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err), "too many of the environment wait")
		_, err = b.CreateRequest(t.Context(), other.ID, withHook("exit 0", "https://quick.example.org/"))
		require.NoError(t, err, "of another they do not")
		close(b.hooks.hold)
		synctest.Wait()
		require.Equal(t, 2_002, b.hooks.count(), "all have their turn")
	})
}

func TestEventsAreTold(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.told.fail(2) // the log cannot be written for a moment
		var ids []string
		for range 3 {
			x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{
				Command: "sleep 1s; exit 4", Spec: execution.Spec{Env: map[string]string{"SECRET": "x"}},
			})
			require.NoError(t, err)
			ids = append(ids, x.ID)
		}
		long := make([]byte, 100<<10)
		x, err := b.Create(
			t.Context(), b.runner.ID, execution.Spec{Argv: []string{"/bin/echo", string(bytes.ReplaceAll(long, []byte{0}, []byte("a")))}},
		)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		all := b.told.all()
		require.Len(t, all, 8)
		for _, id := range ids {
			var kinds []string
			for _, e := range all {
				if e.Execution.ID == id {
					kinds = append(kinds, e.Type)
					require.Empty(t, e.Execution.Spec.Env)
					require.Equal(t, b.runner.ID, e.Execution.RunnerID)
				}
				if e.Execution.ID == id && e.Type == executor.EventEnded {
					require.Equal(t, 4, e.Execution.Receipt.ExitCode)
				}
				if e.Execution.ID == x.ID {
					require.Less(t, len(e.Execution.Spec.Argv[1]), 5_000)
				}
			}
			require.Equal(t, []string{executor.EventStarted, executor.EventEnded}, kinds)
		}
		require.LessOrEqual(t, b.told.calls(), 4, "what happens together is told together")
	})
}

func TestLimitsOfTheClaimBindItsExecutions(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		r, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Limits: drover.Limits{Wall: time.Second, MemoryMB: 64}})
		require.NoError(t, err)
		x, err := b.Start(t.Context(), r.ID, sh("sleep 1h"))
		require.NoError(t, err)
		require.Equal(t, drover.Limits{Wall: time.Second, MemoryMB: 64}, x.Info().Spec.Limits)
		receipt, err := x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, execution.CauseTimeout, receipt.Cause)
		over := sh("exit 0")
		over.Limits.MemoryMB = 65
		_, err = b.Start(t.Context(), r.ID, over)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	})
}
