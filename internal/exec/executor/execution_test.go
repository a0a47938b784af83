package executor_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

func TestRunsAndKeepsStreamsApart(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.Start(t.Context(), b.runner.ID, sh("echo one;err two;echo three;exit 7"))
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		out, errs, receipt := collect(t, r)
		require.NoError(t, r.Close())
		require.Equal(t, "one\nthree\n", out)
		require.Equal(t, "two\n", errs)
		require.Equal(t, 7, receipt.ExitCode)
		require.Equal(t, execution.CauseExited, receipt.Cause)
		require.Equal(t, x.ID(), receipt.ExecutionID)

		late := x.Attach(execution.Offsets{Stdout: 4, Stderr: 1})
		out, errs, _ = collect(t, late)
		require.Equal(t, "three\n", out)
		require.Equal(t, "wo\n", errs)
		require.NoError(t, late.Close())
		list, err := b.List(t.Context(), b.runner.ID)
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}

// An ended execution is kept for a quarter of an hour. It kept the context of its request, and that the request, its answer and the
// connection's buffers: 9 kB for each execution of the benchmark.
func TestAnEndedExecutionKeepsNothingOfItsRequest(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		type key struct{}
		type request [9_000]byte
		asked := new(request)
		kept := weak.Make(asked)
		x, err := b.Start(context.WithValue(t.Context(), key{}, asked), b.runner.ID, sh("echo one"))
		require.NoError(t, err)
		_, err = x.Wait(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		runtime.GC()
		require.True(t, kept.Value() == nil, "it is still there")
		_, err = b.Execution(t.Context(), x.ID())
		require.NoError(t, err)
	})
}

func TestBindsEnvironmentClaimAndSpec(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		spec := sh("env;whoami")
		spec.Env = map[string]string{"C": "spec", "D": "two words; $HOME"}
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		out, _, _ := collect(t, r)
		require.NoError(t, r.Close())
		require.Equal(t, "A=environment\nB=claim\nC=spec\nD=two words; $HOME\nuser\n", out)
	})
}

func TestSeveralReadersAndTheSlowest(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		const size = 5 << 20
		x, err := b.Start(t.Context(), b.runner.ID, sh("spew 5242880"))
		require.NoError(t, err)
		var readers sync.WaitGroup
		for i := range 3 {
			r := x.Attach(execution.Offsets{})
			readers.Go(func() { // ends at the receipt
				total := 0
				for {
					f, err := r.Next(t.Context())
					require.NoError(t, err)
					if f.Receipt != nil {
						break
					}
					require.False(t, f.Skipped)
					total += len(f.Data)
					if i == 2 {
						time.Sleep(time.Millisecond)
					}
				}
				require.Equal(t, size, total)
				require.NoError(t, r.Close())
			})
		}
		readers.Wait()
		late := x.Attach(execution.Offsets{})
		_, err = late.Next(t.Context()) // started
		require.NoError(t, err)
		f, err := late.Next(t.Context())
		require.NoError(t, err)
		require.True(t, f.Skipped, "the window is 1 MiB")
		require.GreaterOrEqual(t, f.Offset, int64(size-(1<<20)-(64<<10)))
		require.NoError(t, late.Close())
	})
}

func TestDetachedAndReattached(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		spec := sh("echo before;sleep 5s;spew 3000000;echo after")
		spec.Detach = 10 * time.Second
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		for range 2 {
			_, err = r.Next(t.Context())
			require.NoError(t, err)
		}
		require.NoError(t, r.Close())
		time.Sleep(9 * time.Second)
		again := x.Attach(execution.Offsets{Stdout: 7})
		out, _, receipt := collect(t, again)
		require.Equal(t, 0, receipt.ExitCode)
		require.True(t, strings.HasSuffix(out, "after\n"))
		require.NoError(t, again.Close())

		x, err = b.Start(t.Context(), b.runner.ID, execution.Spec{Argv: []string{"sleep", "1h"}, Detach: 10 * time.Second})
		require.NoError(t, err)
		r = x.Attach(execution.Offsets{})
		require.NoError(t, r.Close())
		time.Sleep(11 * time.Second)
		require.Equal(t, execution.CauseKilled, x.Info().Receipt.Cause)
	})
}

func TestADesertedExecutionIsKilled(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.Start(t.Context(), b.runner.ID, sh("spew 900000000"))
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		_, err = r.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, r.Close())
		synctest.Wait()
		require.Equal(t, execution.CauseKilled, x.Info().Receipt.Cause)

		never, err := b.Start(t.Context(), b.runner.ID, sh("sleep 10h"))
		require.NoError(t, err)
		time.Sleep(29 * time.Second)
		require.True(t, never.Info().Running, "its reader may still come")
		time.Sleep(2 * time.Second)
		require.Equal(t, execution.CauseKilled, never.Info().Receipt.Cause)
	})
}

// TestTheFirstOutputIsTimed: how long it took since the command was asked for is told once, and of a silent command not at all.
func TestTheFirstOutputIsTimed(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.stop()
		var mu sync.Mutex
		var told []string
		b.startWith(t, executor.Config{}, executor.Deps{Notifier: b.hooks, Teller: b.told, Wrote: func(environment string, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, environment+" after "+took.String())
		}})
		for _, command := range []string{"sleep 1s", "cat"} {
			spec := sh(command)
			spec.Stdin = command == "cat"
			x, err := b.Start(t.Context(), b.runner.ID, spec)
			require.NoError(t, err)
			r := x.Attach(execution.Offsets{})
			time.Sleep(3 * time.Second)
			if spec.Stdin {
				for range 2 {
					require.NoError(t, r.Write(t.Context(), []byte("hello")))
					time.Sleep(time.Second)
				}
				require.NoError(t, r.CloseStdin(t.Context()))
			}
			_, _, receipt := collect(t, r)
			require.Equal(t, execution.CauseExited, receipt.Cause)
			require.NoError(t, r.Close())
		}
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{"e after 3s"}, told)
	})
}

func TestStdinSignalsAndLimits(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		spec := sh("cat")
		spec.Stdin = true
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		require.NoError(t, r.Write(t.Context(), []byte("hello")))
		require.NoError(t, r.CloseStdin(t.Context()))
		out, _, _ := collect(t, r)
		require.Equal(t, "hello", out)
		require.Equal(t, drover.Conflict, drover.CodeOf(r.Write(t.Context(), []byte("late"))))
		require.NoError(t, r.Close())

		spec = sh("sleep 1h")
		spec.Limits.Wall = time.Second
		x, err = b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		receipt, err := x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, execution.CauseTimeout, receipt.Cause)
		require.NotZero(t, receipt.ExitCode)

		x, err = b.Start(t.Context(), b.runner.ID, sh("sleep 1h"))
		require.NoError(t, err)
		require.Equal(t, drover.Invalid, drover.CodeOf(x.Signal(t.Context(), "NOPE")))
		require.NoError(t, x.Signal(t.Context(), "INT"))
		receipt, err = x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, execution.CauseSignalled, receipt.Cause)

		x, err = b.Start(t.Context(), b.runner.ID, execution.Spec{Argv: []string{"missing"}})
		require.NoError(t, err)
		receipt, err = x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, execution.CauseStartFailed, receipt.Cause)
		require.Equal(t, 127, receipt.ExitCode)
	})
}

func TestNoExecutionOutlivesItsRunner(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		spec := sh("echo x;sleep 1h")
		spec.Detach = -1
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.True(t, x.Info().Running, "the idle timer stands still")
		require.NoError(t, b.runners.Release(t.Context(), b.runner.ID))
		receipt, err := x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, execution.CauseRunnerGone, receipt.Cause)
		require.NotZero(t, receipt.ExitCode)
		require.Equal(t, int64(2), receipt.StdoutBytes)
		require.False(t, receipt.StartedAt.IsZero())
		require.ErrorContains(t, x.GoneReason(), "the allocation stopped as expected")
		_, err = b.Start(t.Context(), b.runner.ID, spec)
		require.Equal(t, drover.Gone, drover.CodeOf(err))

		other, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: "e"})
		require.NoError(t, err)
		x, err = b.Start(t.Context(), other.ID, spec)
		require.NoError(t, err)
		synctest.Wait()
		b.control.Node.Break(other.AllocID)
		receipt, err = x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, execution.CauseRunnerGone, receipt.Cause)
	})
}

func TestAPreparedExecutionIsTakenOnce(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		prepared, err := b.Prepare(t.Context(), b.runner.ID, sh("echo x"))
		require.NoError(t, err)
		_, err = b.Take(t.Context(), "other", prepared)
		require.Error(t, err)
		p, err := b.Take(t.Context(), b.runner.ID, prepared)
		require.NoError(t, err)
		require.Equal(t, prepared, p.ID)
		_, err = b.Take(t.Context(), b.runner.ID, prepared)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))

		old, err := b.Prepare(t.Context(), b.runner.ID, sh("echo x"))
		require.NoError(t, err)
		_, err = b.runners.Extend(t.Context(), b.runner.ID, 0)
		require.NoError(t, err)
		time.Sleep(11 * time.Minute)
		_, err = b.Take(t.Context(), b.runner.ID, old)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		_, err = b.Prepare(t.Context(), b.runner.ID, execution.Spec{})
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	})
}

func TestReceiptsAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{RetainCount: 2}, func(t *testing.T, b *bundle) {
		var ids []string
		for range 3 {
			x, err := b.Start(t.Context(), b.runner.ID, sh("echo x"))
			require.NoError(t, err)
			_, err = x.Wait(t.Context())
			require.NoError(t, err)
			synctest.Wait()
			ids = append(ids, x.ID())
		}
		_, err := b.Execution(t.Context(), ids[0])
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "only two are kept")
		_, err = b.Execution(t.Context(), ids[2])
		require.NoError(t, err)
		time.Sleep(15 * time.Minute)
		_, err = b.Execution(t.Context(), ids[2])
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	})
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]execution.Spec{
		"no command": {}, "empty command": {Argv: []string{""}}, "NUL": {Argv: []string{"a\x00"}},
		"negative wall": {Argv: []string{"a"}, Limits: drover.Limits{Wall: -1}}, "stderr without tty": {Argv: []string{"a"}, TTYStderr: true},
		"huge": {Argv: []string{strings.Repeat("x", 2<<20)}}, "env": {Argv: []string{"a"}, Env: map[string]string{"": "x"}},
	} {
		require.Equal(t, drover.Invalid, drover.CodeOf(executor.Validate(spec)), name)
	}
	require.NoError(t, executor.Validate(sh("it's \n fine")))
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		spec := sh("sleep 1h")
		spec.Detach = -1
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = x.Wait(ctx)
		require.True(t, errors.Is(err, context.DeadlineExceeded))
		require.True(t, x.Info().Running)
		require.NoError(t, x.Signal(t.Context(), "KILL"))
		_, err = x.Wait(t.Context())
		require.NoError(t, err)
	})
}

// Found with Poseidon's test of recovery: a runner with an idle timeout of a second lived four after a restart, as each
// look for its executions, for three seconds, began the time anew.
func TestLookingForExecutionsIsNoActivity(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.stop()
		next := b.again(t, executor.Config{})
		time.Sleep(59 * time.Second) // its idle timeout is a minute
		_, err := b.runners.Runner(t.Context(), b.runner.ID)
		require.NoError(t, err)
		time.Sleep(1100 * time.Millisecond)
		_, err = b.runners.Runner(t.Context(), b.runner.ID)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		next.stop()
	})
}

// Who asks for executions and never connects gets no more memory than there is for that.
func TestPreparedExecutionsAreBounded(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		_, err := b.runners.Extend(t.Context(), b.runner.ID, 0)
		require.NoError(t, err)
		long := sh("echo " + strings.Repeat("x", 1<<20-100)) // shared by all of them here
		n := 0
		for ; err == nil; n++ {
			require.Less(t, n, 300)
			_, err = b.Prepare(t.Context(), b.runner.ID, long)
		}
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		require.Greater(t, n, 250)
		time.Sleep(11 * time.Minute)
		prepared, err := b.Prepare(t.Context(), b.runner.ID, long)
		require.NoError(t, err)
		_, err = b.Take(t.Context(), b.runner.ID, prepared)
		require.NoError(t, err)
	})
}
