package executor_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

// output attaches and reads to the end.
func (b *bundle) output(t *testing.T, id string, from execution.Offsets) (out, err string, skipped bool) {
	t.Helper()
	session, e := b.Attach(t.Context(), id, from)
	require.NoError(t, e)
	defer session.Close()
	for {
		f, e := session.Next(t.Context())
		require.NoError(t, e)
		skipped = skipped || f.Skipped
		switch {
		case f.Receipt != nil:
			return out, err, skipped
		case f.Stream == execution.Stderr:
			err += string(f.Data)
		default:
			out += string(f.Data)
		}
	}
}

// An execution had ended, its end was recorded, and its server was killed before its client had read all: the others had the receipt
// alone. The runner keeps the output, and whoever attaches at another server gets it from there.
func TestOutputOutlivesItsServer(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.share(t, executor.Config{})
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Command: "echo one;err two;exit 3"})
		require.NoError(t, err)
		time.Sleep(time.Second) // it has ended, and that is recorded
		b.stop()

		next := b.another(t, executor.Config{})
		for range 2 {
			out, errs, skipped := next.output(t, x.ID, execution.Offsets{})
			require.Equal(t, []any{"one\n", "two\n", false}, []any{out, errs, skipped})
		}
		out, _, skipped := next.output(t, x.ID, execution.Offsets{Stdout: 2, Stderr: 4})
		require.Equal(t, []any{"e\n", false}, []any{out, skipped})
		list, err := next.List(t.Context(), b.runner.ID)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, 3, list[0].Receipt.ExitCode)
		next.stop()
	})
}

// A server that is alone finds the output again after a restart.
func TestOutputOutlivesARestart(t *testing.T) {
	t.Parallel()
	cfg := executor.Config{LedgerPath: filepath.Join(t.TempDir(), "ledger")}
	bubble(t, cfg, func(t *testing.T, b *bundle) {
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Command: "echo one"})
		require.NoError(t, err)
		time.Sleep(time.Second)
		b.stop()
		next := b.again(t, cfg)
		out, _, skipped := next.output(t, x.ID, execution.Offsets{})
		require.Equal(t, []any{"one\n", false}, []any{out, skipped})
		next.stop()
	})
}

// What is gone is told: the runner ended, or keeps newer output. A node that is away may have it: who asks is told to ask again.
func TestOutputThatIsGone(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.share(t, executor.Config{})
		var ids []string
		for range 2 {
			x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Command: "echo one"})
			require.NoError(t, err)
			ids = append(ids, x.ID)
		}
		time.Sleep(time.Second)
		b.stop()
		next := b.another(t, executor.Config{})

		b.control.Node.CutLink(true)
		begin := time.Now()
		done := make(chan error)
		for range 3 { // beside each other
			go func() {
				_, err := next.Attach(t.Context(), ids[0], execution.Offsets{})
				done <- err
			}()
		}
		for range 3 {
			require.Equal(t, drover.Unavailable, drover.CodeOf(<-done))
		}
		require.LessOrEqual(t, time.Since(begin), 6*time.Second)
		info, err := next.Info(t.Context(), ids[0])
		require.NoError(t, err, "its end is known")
		require.NotNil(t, info.Receipt)
		b.control.Node.CutLink(false)
		out, _, _ := next.output(t, ids[0], execution.Offsets{})
		require.Equal(t, "one\n", out)

		b.control.Node.DropKept()
		out, _, skipped := next.output(t, ids[1], execution.Offsets{})
		require.Equal(t, []any{"", true}, []any{out, skipped})
		require.NoError(t, b.runners.Release(t.Context(), b.runner.ID))
		time.Sleep(time.Second)
		next.stop()
		last := b.another(t, executor.Config{})
		out, _, skipped = last.output(t, ids[0], execution.Offsets{})
		require.Equal(t, []any{"", true}, []any{out, skipped})
		synctest.Wait()
		last.stop()
	})
}
