package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

// TestNobodyWaitsForObservers: a hundred of them read nothing, and a program that writes five times what is kept comes to its end as its
// one reader has read it. They are told what they missed, get the rest, and can do nothing.
func TestNobodyWaitsForObservers(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.Start(t.Context(), b.runner.ID, sh("spew 5242880;err done"))
		require.NoError(t, err)
		var idle []execution.Session
		for range 100 {
			o, err := b.Observe(t.Context(), x.ID(), execution.Offsets{})
			require.NoError(t, err)
			idle = append(idle, o)
		}
		r := x.Attach(execution.Offsets{})
		out, _, receipt := collect(t, r)
		require.NoError(t, r.Close())
		require.Len(t, out, 5<<20)
		require.False(t, receipt.Truncated)
		for _, o := range idle {
			first, err := o.Next(t.Context())
			require.NoError(t, err)
			require.True(t, first.Started)
			missed, err := o.Next(t.Context())
			require.NoError(t, err)
			require.True(t, missed.Skipped)
			require.Positive(t, missed.Offset)
			rest, errs, _ := collect(t, o)
			require.Len(t, rest, 5<<20-int(missed.Offset)-len(missed.Data))
			require.Equal(t, "done\n", errs)
			for _, err := range []error{
				o.Write(t.Context(), []byte("x")), o.CloseStdin(t.Context()), o.Signal(t.Context(), "KILL"),
				o.Resize(t.Context(), execution.WindowSize{Rows: 1, Cols: 1}),
			} {
				require.Equal(t, drover.Invalid, drover.CodeOf(err))
			}
			require.NoError(t, o.Close())
		}
	})
}

// TestNothingLivesOnForObservers: who only observes is no reader, whose absence ends what may not run detached.
func TestNothingLivesOnForObservers(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.Start(t.Context(), b.runner.ID, sh("echo begun;sleep 1h"))
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		o, err := b.Observe(t.Context(), x.ID(), execution.Offsets{Stdout: -1})
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, r.Close())
		out, _, receipt := collect(t, o)
		require.Equal(t, "begun\n", out)
		require.Equal(t, execution.CauseKilled, receipt.Cause)
		_, err = b.Observe(t.Context(), "none", execution.Offsets{})
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	})
}

// TestObserversHaveAPace: one that reads as fast as it can gets no more than 26 MB in a second, and is woken no more than 40 times.
func TestObserversHaveAPace(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.Start(t.Context(), b.runner.ID, sh("spew 1048576"))
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		defer r.Close()
		_, _, _ = collect(t, r)
		begun := time.Now()
		for range 20 {
			o, err := b.Observe(t.Context(), x.ID(), execution.Offsets{})
			require.NoError(t, err)
			_, _, _ = collect(t, o)
		}
		require.GreaterOrEqual(t, time.Since(begun), 20*3*10*time.Millisecond)
		y, err := b.Start(t.Context(), b.runner.ID, sh(strings.Repeat("echo x;sleep 1ms;", 200)))
		require.NoError(t, err)
		own := y.Attach(execution.Offsets{})
		defer own.Close()
		o, err := b.Observe(t.Context(), y.ID(), execution.Offsets{})
		require.NoError(t, err)
		frames := 0
		for {
			f, err := o.Next(t.Context())
			require.NoError(t, err)
			if f.Receipt != nil {
				break
			}
			frames++
		}
		require.LessOrEqual(t, frames, 15, "200 ms, 25 ms each")
	})
}

// TestOutputHasItsTimes: marks say when what came, and stay after the end; of what an earlier process saw they are not known.
func TestOutputHasItsTimes(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.share(t, executor.Config{})
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{
			Command: "echo one;sleep 2s;err two;sleep 1s;echo three", Spec: execution.Spec{Detach: -1},
		})
		require.NoError(t, err)
		_, err = b.Wait(t.Context(), x.ID)
		require.NoError(t, err)
		got, err := b.Timeline(t.Context(), x.ID)
		require.NoError(t, err)
		require.Equal(t, []execution.Mark{
			{At: 0, Stream: "stdout", End: 4}, {At: 2 * time.Second, Stream: "stderr", End: 4}, {At: 3 * time.Second, Stream: "stdout", End: 10},
		}, got.Marks)
		require.Equal(t, 3*time.Second, got.Ended)
		require.False(t, got.Partial)
		require.False(t, got.StartedAt.IsZero())
		_, err = b.Timeline(t.Context(), "none")
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		time.Sleep(time.Second) // that it ended is recorded
		b.stop()
		next := b.another(t, executor.Config{})
		late, err := next.Timeline(t.Context(), x.ID)
		require.NoError(t, err)
		require.True(t, late.Partial)
		require.Empty(t, late.Marks)
		next.stop()
	})
}
