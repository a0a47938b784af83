package executor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
)

func TestABrokenLinkIsMended(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x, err := b.Start(t.Context(), b.runner.ID, sh("echo one;sleep 10s;echo two"))
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		for range 2 {
			_, err = r.Next(t.Context())
			require.NoError(t, err)
		}
		b.control.Node.CutLink(true)
		time.Sleep(5 * time.Second)
		require.True(t, x.Info().Running)
		b.control.Node.CutLink(false)
		out, _, receipt := collect(t, r)
		require.Equal(t, "two\n", out)
		require.Equal(t, 0, receipt.ExitCode)
		require.NoError(t, r.Close())

		x, err = b.Start(t.Context(), b.runner.ID, sh("sleep 10h"))
		require.NoError(t, err)
		r = x.Attach(execution.Offsets{})
		b.control.Node.CutLink(true)
		_, _, receipt = collect(t, r)
		require.Equal(t, execution.CauseRunnerGone, receipt.Cause)
		require.NoError(t, r.Close())
		b.control.Node.CutLink(false)
		b.control.Node.Break(b.runner.AllocID)
	})
}

func TestExecutionsSurviveAServerRestart(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		spec := sh("echo one;sleep 10m;echo two")
		spec.Detach = -1
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		synctest.Wait()
		b.control.Node.CutLink(true) // the old server is gone
		b.stop()
		next := b.again(t, executor.Config{})
		time.Sleep(3 * time.Second)
		b.control.Node.CutLink(false)
		found, err := next.Execution(t.Context(), x.ID())
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		require.True(t, found.Info().Running, "the idle timer stands still for it")
		r := found.Attach(execution.Offsets{})
		out, _, receipt := collect(t, r)
		require.Equal(t, "two\n", out)
		require.Equal(t, 0, receipt.ExitCode)
		require.NoError(t, r.Close())
		next.stop()
	})
}

// The connection broke when stdin was to be closed: the command waited for the end of its input for ever, and its claimer, whose own
// connection lived, for the command. (TestAnExecutionOutlivesItsServers: a server that was back for moments reached the node through the
// one that stopped.)
func TestStdinEndsThoughTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		spec := sh("cat;exit 4")
		spec.Stdin, spec.Detach = true, -1
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{})
		require.NoError(t, r.Write(t.Context(), []byte("all")))
		b.control.Node.CutLink(true)
		closed := make(chan error, 1)
		go func() { closed <- r.CloseStdin(t.Context()) }()
		synctest.Wait()
		b.control.Node.CutLink(false)
		_, _, receipt := collect(t, r)
		require.Equal(t, 4, receipt.ExitCode)
		require.NoError(t, <-closed)
		require.Equal(t, drover.Conflict, drover.CodeOf(r.CloseStdin(t.Context())), "it has ended")
		require.NoError(t, r.Close())
	})
}

// A command ended while its server stopped, which was still to read what it wrote before. By letting go of it the server said that it had
// the receipt, and so the next one never heard of the execution: nobody could say how it ended.
func TestAnEndThatAServerDidNotReadIsTheNextServers(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{Window: 128 << 10}, func(t *testing.T, b *bundle) {
		spec := sh("spew 81920;exit 3")
		spec.Detach = -1
		x, err := b.Start(t.Context(), b.runner.ID, spec)
		require.NoError(t, err)
		r := x.Attach(execution.Offsets{}) // who reads nothing, so that the receipt waits
		synctest.Wait()
		require.True(t, x.Info().Running)
		b.stop()
		require.NoError(t, r.Close())
		next := b.again(t, executor.Config{})
		found, err := next.Execution(t.Context(), x.ID())
		require.NoError(t, err)
		receipt, err := found.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, receipt.ExitCode)
		require.Equal(t, execution.CauseExited, receipt.Cause)
		next.stop()
	})
}

// While a node is away nobody can say that an execution is none of it. Its claimer was told so after five seconds (chaos, seed 20261130).
func TestAnExecutionOfANodeThatIsAwayMayExist(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		x := b.sleeper(t)
		b.control.Node.CutLink(true)
		b.stop()
		next := b.again(t, executor.Config{})
		_, err := next.Execution(t.Context(), x.ID())
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
		_, err = next.Finds(t.Context(), x.ID())
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
		b.control.Node.CutLink(false)
		found, err := next.Execution(t.Context(), x.ID())
		require.NoError(t, err)
		require.True(t, found.Info().Running)
		_, err = next.Execution(t.Context(), "none")
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		time.Sleep(11 * time.Minute) // until it ended
		next.stop()
	})
}

// Right after a restart a claimer was told that nothing runs in its runner, until the node was asked.
// (TestWhatRanBeforeAKillRunsAfterIt, on a busy machine)
func TestAfterARestartARunnersListIsWhole(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		idle, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: b.runner.Environment, Wait: time.Minute})
		require.NoError(t, err)
		x := b.sleeper(t)
		b.control.Node.CutLink(true) // the old server is gone
		b.stop()
		next := b.again(t, executor.Config{})
		synctest.Wait()
		_, err = next.List(t.Context(), b.runner.ID)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "the node is away")
		b.control.Node.CutLink(false)
		begin := time.Now()
		list, err := next.List(t.Context(), b.runner.ID)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, x.ID(), list[0].ID)
		require.True(t, list[0].Running)
		list, err = next.List(t.Context(), idle.ID)
		require.NoError(t, err)
		require.Empty(t, list)
		require.Less(t, time.Since(begin), 2*time.Second)
		time.Sleep(11 * time.Minute) // until it ended
		next.stop()
	})
}

// A runner without executions does not hold up what was found in others.
func TestAfterARestartWhatWasFoundIsThereAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		_, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: b.runner.Environment, Wait: time.Minute})
		require.NoError(t, err)
		x := b.sleeper(t)
		b.stop()
		next := b.again(t, executor.Config{})
		begin := time.Now()
		_, err = next.Execution(t.Context(), x.ID())
		require.NoError(t, err)
		require.Less(t, time.Since(begin), time.Second)
		time.Sleep(11 * time.Minute) // until it ended
		next.stop()
	})
}

func TestANodeThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		begin := time.Now()
		_, err := b.Start(t.Context(), b.runner.ID, execution.Spec{Argv: []string{exectest.Stuck}})
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.Equal(t, time.Minute, time.Since(begin))
		x, err := b.Start(t.Context(), b.runner.ID, sh("exit 4"))
		require.NoError(t, err)
		receipt, err := x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 4, receipt.ExitCode)
	})
}

// sleeper starts an execution that nobody has to be attached to. It runs for ten minutes.
func (b *bundle) sleeper(t *testing.T) *executor.Execution {
	t.Helper()
	spec := sh("sleep 10m")
	spec.Detach = -1
	x, err := b.Start(t.Context(), b.runner.ID, spec)
	require.NoError(t, err)
	synctest.Wait()
	return x
}
