package supervisor

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func TestStreamsApartAndExitCode(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	r := run(t, c, sh("echo out; echo err >&2; exit 3"))
	require.Equal(t, "out\n", string(r.stdout))
	require.Equal(t, "err\n", string(r.stderr))
	require.True(t, r.started)
	require.Equal(t, 3, r.receipt.ExitCode)
	require.Equal(t, execution.CauseExited, r.receipt.Cause)
	require.Equal(t, int64(4), r.receipt.StdoutBytes)
	require.Positive(t, r.receipt.Wall)
	require.Positive(t, r.receipt.PeakMemory)
}

func TestCommandsThatCannotStart(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	for name, x := range map[string]struct {
		spec   execution.Spec
		exit   int
		reason string
	}{
		"missing":        {execution.Spec{Argv: []string{"no-such-command"}}, 127, "command not found: no-such-command"},
		"missing path":   {execution.Spec{Argv: []string{"/no/such"}}, 127, "command not found: /no/such"},
		"not executable": {execution.Spec{Argv: []string{"/etc/passwd"}}, 126, "permission denied: /etc/passwd"},
		"no directory":   {execution.Spec{Argv: []string{"true"}, WorkDir: "/no/such"}, 126, "no such directory: /no/such"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, c, x.spec)
			require.Equal(t, execution.CauseStartFailed, r.receipt.Cause)
			require.Equal(t, x.exit, r.receipt.ExitCode)
			require.Equal(t, x.reason, r.receipt.Error)
		})
	}
	_, err := c.StartExecution(t.Context(), execution.Spec{Argv: []string{"true"}, User: "no-such-user"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, `unknown user "no-such-user"`)
	_, err = c.StartExecution(t.Context(), execution.Spec{})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestStdinIsStreamedAndEnds(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	s, err := c.StartExecution(t.Context(), execution.Spec{Argv: []string{"cat"}, Stdin: true})
	require.NoError(t, err)
	want := bytes.Repeat([]byte("0123456789abcde\n"), 1<<17) // 2 MiB: more than every buffer
	var wg sync.WaitGroup
	wg.Go(func() { // ends when all is written
		if err := s.Write(t.Context(), want); err != nil {
			t.Error(err)
		}
		if err := s.CloseStdin(t.Context()); err != nil {
			t.Error(err)
		}
	})
	r := collect(t, s)
	wg.Wait()
	require.True(t, bytes.Equal(want, r.stdout))
	require.Equal(t, 0, r.receipt.ExitCode)
}

func TestStdinOfOneThatDoesNotReadIsNoObstacle(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	s, err := c.StartExecution(t.Context(), execution.Spec{Argv: []string{"sh", "-c", "exec <&-; echo hi"}, Stdin: true})
	require.NoError(t, err)
	_ = s.Write(t.Context(), make([]byte, 1<<20))
	r := collect(t, s)
	require.Equal(t, "hi\n", string(r.stdout))
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	spec := execution.Spec{
		Argv: []string{
			"sh",
			"-c",
			"stty size; test -t 0 && test -t 1 && echo tty; test -t 2 || echo pipe >&2; read x; stty size; echo got $x; read y || echo eof",
		},
		TTY:       true,
		TTYStderr: true,
		Stdin:     true,
		Size:      execution.WindowSize{Rows: 10, Cols: 33},
	}
	s, err := c.StartExecution(t.Context(), spec)
	require.NoError(t, err)
	var out string
	for !strings.Contains(out, "tty") {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		if f.Stream == execution.Stdout {
			out += string(f.Data)
		}
	}
	require.NoError(t, s.Resize(t.Context(), execution.WindowSize{Rows: 11, Cols: 44}))
	require.NoError(t, s.Write(t.Context(), []byte("word\n")))
	require.NoError(t, s.CloseStdin(t.Context()))
	r := collect(t, s)
	out += string(r.stdout)
	require.Contains(t, out, "10 33\r\n")
	require.Contains(t, out, "11 44\r\n")
	require.Contains(t, out, "got word\r\n")
	require.Contains(t, out, "eof\r\n")
	require.Equal(t, 0, r.receipt.ExitCode)
}

func TestSignals(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	s, err := c.StartExecution(t.Context(), sh(`trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.01; done`))
	require.NoError(t, err)
	awaitOutput(t, s, "ready\n")
	require.Equal(t, drover.Invalid, drover.CodeOf(s.Signal(t.Context(), "SIGNONSENSE")))
	require.NoError(t, s.Signal(t.Context(), "INT"))
	r := collect(t, s)
	require.Equal(t, "caught\n", string(r.stdout))
	require.Equal(t, 9, r.receipt.ExitCode)

	s, err = c.StartExecution(t.Context(), sh("sleep 1000"))
	require.NoError(t, err)
	require.NoError(t, s.Signal(t.Context(), "KILL"))
	r = collect(t, s)
	require.Equal(t, execution.CauseKilled, r.receipt.Cause)
	require.Equal(t, 137, r.receipt.ExitCode)
}

func awaitOutput(t *testing.T, s execution.Session, want string) {
	t.Helper()
	var got string
	for !strings.HasSuffix(got, want) {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		got += string(f.Data)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	t.Run("wall", func(t *testing.T) {
		t.Parallel()
		spec := sh("trap '' TERM INT QUIT; echo x; sleep 1000 & wait")
		spec.Limits.Wall = time.Second // a busy machine needs a part of it to start the shell
		r := run(t, c, spec)
		require.Equal(t, execution.CauseTimeout, r.receipt.Cause)
		require.Equal(t, 137, r.receipt.ExitCode)
		require.GreaterOrEqual(t, r.receipt.Wall, time.Second)
		require.Less(t, r.receipt.Wall, time.Minute, "the sleep was not waited for")
		require.Equal(t, "x\n", string(r.stdout))
	})
	t.Run("cpu", func(t *testing.T) {
		t.Parallel()
		spec := sh("while :; do :; done")
		spec.Limits.CPU = 100 * time.Millisecond
		r := run(t, c, spec)
		require.Equal(t, execution.CauseCPULimit, r.receipt.Cause)
		require.NotZero(t, r.receipt.ExitCode)
	})
	t.Run("cpu of children", func(t *testing.T) {
		t.Parallel()
		spec := sh("for i in 1 2; do (while :; do :; done) & done; wait")
		spec.Limits.CPU = 200 * time.Millisecond
		r := run(t, c, spec)
		require.Equal(t, execution.CauseCPULimit, r.receipt.Cause)
		require.GreaterOrEqual(t, r.receipt.UserCPU+r.receipt.SystemCPU, spec.Limits.CPU)
	})
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		spec := sh("head -c 3000000 /dev/zero; echo done >&2; exit 4")
		spec.Limits.OutputBytes = 1000
		r := run(t, c, spec)
		require.Len(t, r.stdout, 1000)
		require.Equal(t, "done\n", string(r.stderr))
		require.Equal(t, 4, r.receipt.ExitCode)
		require.True(t, r.receipt.Truncated)
		require.Equal(t, int64(3000000), r.receipt.StdoutBytes)
	})
	t.Run("endless output", func(t *testing.T) {
		t.Parallel()
		spec := sh("exec yes")
		spec.Limits.OutputBytes = 1000
		r := run(t, c, spec)
		require.Len(t, r.stdout, 1000)
		require.Equal(t, execution.CauseOutputLimit, r.receipt.Cause)
		require.NotZero(t, r.receipt.ExitCode)
		require.True(t, r.receipt.Truncated)
	})
	t.Run("memory of all processes together", func(t *testing.T) {
		t.Parallel()
		spec := sh("for i in 1 2 3 4; do head -c 30000000 /dev/zero | tail -c 30000000 | sleep 100 & done; wait")
		spec.Limits.MemoryMB = 64
		r := run(t, c, spec)
		require.Equal(t, execution.CauseOOM, r.receipt.Cause)
		require.Equal(t, 137, r.receipt.ExitCode)
	})
	t.Run("processes", func(t *testing.T) {
		t.Parallel()
		spec := sh("for i in 1 2 3 4 5 6 7 8 9 10; do setsid sleep 100 & done; wait")
		spec.Limits.Pids = 5
		r := run(t, c, spec)
		require.Equal(t, execution.CauseKilled, r.receipt.Cause)
		require.Contains(t, r.receipt.Error, "its limit is 5")
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		spec := sh("ulimit -n; head -c 5000000 /dev/zero > big; echo $?")
		spec.Limits.OpenFiles, spec.Limits.FileSizeMB = 50, 1
		spec.WorkDir = t.TempDir()
		r := run(t, c, spec)
		require.True(t, strings.HasPrefix(string(r.stdout), "50\n"), string(r.stdout))
		require.NotEqual(t, "50\n0\n", string(r.stdout))
	})
}

func TestWhatTheCommandLeftBehindIsKilled(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	r := run(t, c, sh(fmt.Sprintf("setsid %[1]s & %[1]s & (setsid sh -c '%[1]s; :' &) ; echo ok", napping("987."))))
	require.Equal(t, "ok\n", string(r.stdout))
	require.Less(t, r.receipt.Wall, time.Minute, "the sleeps were not waited for")
	require.Empty(t, processesLike(napping("987.")))
}

// Children that nobody waits for are counted: of two executions at once each its own, and one that has left its session
// where there is only one.
func TestOrphansAreCounted(t *testing.T) {
	t.Parallel()
	const burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done" // many times what a few processes cost to start
	dir := t.TempDir()
	orphan := func(fifo, how, work, then string) execution.Spec { // the execution ends when the work is done
		fifo = filepath.Join(dir, fifo)
		return sh(fmt.Sprintf("mkfifo %[1]s; (%[2]s sh -c '%[3]s; exec 9>&-; %[4]s' 9>%[1]s &) ; cat %[1]s", fifo, how, work, then))
	}
	cpu := func(c *Client, s execution.Spec) time.Duration {
		r := run(t, c, s).receipt
		require.Equal(t, execution.CauseExited, r.Cause)
		return r.UserCPU + r.SystemCPU
	}
	c, _ := launch(t, nil)
	most := cpu(c, sh(burn))
	require.Greater(t, cpu(c, orphan("alone", "setsid", burn, ":")), most/3)
	var heavy, light time.Duration
	var both sync.WaitGroup
	both.Go(func() { heavy = cpu(c, orphan("heavy", "", burn, ":")) })
	both.Go(func() { light = cpu(c, orphan("light", "", ":", ":")) })
	both.Wait()
	require.Greater(t, heavy, most/3)
	require.Less(t, light, most/3)
	require.Greater(t, cpu(c, orphan("killed", "", burn, "exec sleep 1000")), most/3, "it is killed with the execution")
}

func TestKeepTree(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	spec := sh("sleep 986.5 & echo $!")
	spec.KeepTree = true
	r := run(t, c, spec)
	var pid int
	_, err := fmt.Sscan(string(r.stdout), &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0)) // not by name: it may not have executed sleep yet
	require.NoError(t, c.Shutdown(t.Context()))
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestLargeOutputIsByteEqual(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	r := run(t, c, sh("head -c 67108864 /dev/zero | tr '\\0' 'x'"))
	require.Len(t, r.stdout, 64<<20)
	require.Equal(t, 64<<20, bytes.Count(r.stdout, []byte("x")))
}

func TestSlowReaderSlowsTheProgram(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	s, err := c.StartExecution(t.Context(), sh("head -c 8000000 /dev/zero; echo written >&2"))
	require.NoError(t, err)
	f, err := s.Next(t.Context())
	require.NoError(t, err)
	require.True(t, f.Started)
	ctx := t.Context()
	list, err := c.Executions(ctx)
	require.NoError(t, err)
	require.True(t, list[0].Running)
	r := collect(t, s)
	require.Len(t, r.stdout, 8000000)
	require.Equal(t, "written\n", string(r.stderr))
}

func TestFiftyAtOnce(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { // ends with its execution
			r := run(t, c, sh(fmt.Sprintf("echo %d; exit %d", i, i)))
			if string(r.stdout) != fmt.Sprintf("%d\n", i) || r.receipt.ExitCode != i {
				t.Errorf("%d: %q %v", i, r.stdout, r.receipt)
			}
		})
	}
	wg.Wait()
}

func TestDuplicateIDIsAConflict(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	spec := sh("sleep 1000")
	spec.ID = "a"
	s, err := c.StartExecution(t.Context(), spec)
	require.NoError(t, err)
	_, err = c.StartExecution(t.Context(), spec)
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.NoError(t, s.Close())
	_, err = c.AttachExecution(t.Context(), "nonsense", execution.Offsets{})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

// A reader who vanishes may come back: what it reads lives on, and its receipt is kept.
func TestALostReaderFindsTheExecutionAgain(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	ctx := t.Context()
	lose := func(s execution.Session) {
		l, ok := s.(interface{ Lost() })
		require.True(t, ok)
		l.Lost()
	}
	s, err := c.StartExecution(ctx, execution.Spec{ID: "x", Argv: []string{"sh", "-c", "echo one; read x; echo $x; exit 3"}, Stdin: true})
	require.NoError(t, err)
	awaitOutput(t, s, "one\n")
	lose(s)
	s, err = c.AttachExecution(ctx, "x", execution.Offsets{Stdout: 4})
	require.NoError(t, err)
	require.NoError(t, s.Write(ctx, []byte("two\n")))
	awaitOutput(t, s, "two\n")
	for range 2 {
		got := drain(t, s)
		require.Equal(t, 3, got.ExitCode)
		lose(s)
		s, err = c.AttachExecution(ctx, "x", execution.Offsets{Stdout: 8})
		require.NoError(t, err)
	}
	drain(t, s)
	require.NoError(t, s.Close())
}

// A server that stopped in the moment in which a command ended let go of it. The supervisor took that for the word that the
// receipt was written down. So the server that came after it was told that the end is known, and nobody ever said how the command
// had ended.
func TestAReceiptThatNobodyTookIsTheNextReaders(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	ctx := t.Context()
	spec := sh("exit 3")
	spec.ID, spec.Keep = "x", time.Minute
	s, err := c.StartExecution(ctx, spec)
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, 3, drain(t, s).ExitCode)
		execution.LetGo(s)
		list, err := c.Executions(ctx)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.False(t, list[0].Taken)
		s, err = c.AttachExecution(ctx, "x", execution.Offsets{})
		require.NoError(t, err)
	}
	require.Equal(t, 3, drain(t, s).ExitCode)
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool {
		list, err := c.Executions(ctx)
		return err == nil && len(list) == 1 && list[0].Taken
	}, time.Minute, time.Millisecond)
}

// Bytes that the program was not given when their session was closed were acknowledged: their sender dropped them, and nobody could say
// where stdin goes on. (a variant of TestAnExecutionOutlivesItsServers)
func TestAClosedSessionAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	spec := sh("exec sleep 1000") // which reads nothing
	spec.Stdin, spec.Detach = true, -1
	s, err := c.StartExecution(t.Context(), spec)
	require.NoError(t, err)
	wrote := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		close(began)
		wrote <- s.Write(t.Context(), make([]byte, 1<<20)) // more than its pipe takes
	}()
	<-began
	execution.LetGo(s)
	require.Equal(t, drover.Gone, drover.CodeOf(<-wrote))
}

// Each session hears how much of stdin came before it. From then on what an earlier one sends is not the program's any more: who
// goes on knows what is missing, and sends it.
func TestStdinGoesOnInAnotherSession(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	ctx := t.Context()
	begun := func(s execution.Session) int64 {
		f, err := s.Next(ctx)
		require.NoError(t, err)
		require.True(t, f.Started)
		require.NotNil(t, f.Stdin)
		return *f.Stdin
	}
	one, err := c.StartExecution(ctx, execution.Spec{ID: "x", Argv: []string{"cat"}, Stdin: true})
	require.NoError(t, err)
	require.Zero(t, begun(one))
	require.NoError(t, one.Write(ctx, []byte("one\n")), "it was given to the program")
	two, err := c.AttachExecution(ctx, "x", execution.Offsets{})
	require.NoError(t, err)
	require.Equal(t, int64(4), begun(two))
	late := make(chan error, 1)
	go func() { late <- one.Write(ctx, []byte("late\n")) }() // ends with its session
	require.NoError(t, two.Write(ctx, []byte("two\n")))
	awaitOutput(t, two, "one\ntwo\n")
	require.NoError(t, one.Close())
	<-late
	require.NoError(t, two.CloseStdin(ctx))
	require.Equal(t, int64(8), drain(t, two).StdoutBytes)
	require.NoError(t, two.Close())
}

// drain reads up to the receipt.
func drain(t *testing.T, s execution.Session) *execution.Receipt {
	t.Helper()
	for {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		if f.Receipt != nil {
			return f.Receipt
		}
	}
}
