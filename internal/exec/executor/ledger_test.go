package executor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

func TestReceiptsAndWebhooksSurviveARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	cfg := executor.Config{LedgerPath: path}
	bubble(t, cfg, func(t *testing.T, b *bundle) {
		done, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("echo abc;exit 3", "https://example.org/down"))
		require.NoError(t, err)
		told, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 4", "https://example.org/"))
		require.NoError(t, err)
		long := withHook("sleep 10m; exit 5", "https://example.org/long")
		long.Detach = -1
		running, err := b.CreateRequest(t.Context(), b.runner.ID, long)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.stop()
		b.control.Node.DropKept() // newer output took its place

		next := b.again(t, cfg)
		defer next.stop()
		time.Sleep(5 * time.Second)
		for id, code := range map[string]int{done.ID: 3, told.ID: 4} {
			x, err := next.Info(t.Context(), id)
			require.NoError(t, err)
			require.False(t, x.Running)
			require.Equal(t, code, x.Receipt.ExitCode)
			require.Empty(t, x.Spec.Env)
			out, _, receipt := collect(t, must(next.Attach(t.Context(), id, execution.Offsets{})))
			require.Empty(t, out)
			require.Equal(t, code, receipt.ExitCode)
		}
		late := must(next.Attach(t.Context(), done.ID, execution.Offsets{Stdout: 2}))
		f, err := late.Next(t.Context())
		require.NoError(t, err)
		require.True(t, f.Started)
		f, err = late.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, execution.Frame{Stream: execution.Stdout, Offset: 4, Skipped: true}, f, "of its output only the size is known")
		f, err = late.Next(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 4, f.Receipt.StdoutBytes)
		require.Contains(t, next.hooks.called(), "https://example.org/down")
		require.NotContains(t, next.hooks.called(), "https://example.org/", "it was told before")
		x, err := next.Info(t.Context(), running.ID)
		require.NoError(t, err)
		require.True(t, x.Running)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		require.Contains(t, next.hooks.called(), "https://example.org/long")
		var last execution.Execution
		require.NoError(t, json.Unmarshal(next.hooks.last, &last))
		require.Equal(t, 5, last.Receipt.ExitCode)
	})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "claim", "variables are not written down")
}

func TestWhatIsNotFoundAgainIsToldAsLost(t *testing.T) {
	t.Parallel()
	cfg := executor.Config{LedgerPath: filepath.Join(t.TempDir(), "ledger")}
	bubble(t, cfg, func(t *testing.T, b *bundle) {
		spec := sh("sleep 10h")
		spec.Detach = -1
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Spec: spec, Webhook: "https://example.org/"})
		require.NoError(t, err)
		synctest.Wait()
		b.stop()
		require.NoError(t, b.runners.Release(t.Context(), b.runner.ID))
		next := b.again(t, cfg)
		defer next.stop()
		time.Sleep(time.Minute)
		lost, err := next.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.Equal(t, execution.CauseRunnerGone, lost.Receipt.Cause)
		require.NotZero(t, lost.Receipt.ExitCode)
		require.Equal(t, "the server restarted while it ran, and did not find it again: the allocation stopped as expected", lost.Receipt.Error)
		require.Equal(t, 1, next.hooks.count())
		require.Len(t, next.told.all(), 1)

		time.Sleep(time.Hour)
		last := next.again(t, cfg)
		defer last.stop()
		time.Sleep(time.Minute)
		_, err = last.Info(t.Context(), x.ID)
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "it was kept long enough")
		require.Zero(t, last.hooks.count())
	})
}

func must(s execution.Session, err error) execution.Session {
	if err != nil {
		panic(err)
	}
	return s
}

// Found as a receipt of a command that ended with 7, by a process that was killed once its client had read the 7, and
// came back with 137.
func TestNobodyHearsOfAnEndThatIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	bubble(t, executor.Config{LedgerPath: path}, func(t *testing.T, b *bundle) {
		written := func(id string) {
			t.Helper()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Regexp(t, `"id":"`+id+`".*"exitCode":7`, string(text))
		}
		for range 50 {
			waited, err := b.Start(t.Context(), b.runner.ID, sh("exit 7"))
			require.NoError(t, err)
			_, err = waited.Wait(t.Context())
			require.NoError(t, err)
			written(waited.ID())
			read, err := b.Start(t.Context(), b.runner.ID, sh("exit 7"))
			require.NoError(t, err)
			_, _, receipt := collect(t, read.Attach(execution.Offsets{}))
			require.Equal(t, 7, receipt.ExitCode)
			written(read.ID())
		}
	})
}
