package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

func withLogs(t *testing.T, dir string) func(*LaunchConfig) {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return func(cfg *LaunchConfig) {
		cfg.LogDir, cfg.Log = f, LogFiles{Task: "web", MaxFiles: 3, MaxFileSize: 1000}
	}
}

func TestMainTaskLogsAndExit(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	c, _ := launch(t, withLogs(t, logs))
	_, err := c.WaitTask(t.Context(), nil)
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	pid, err := c.StartTask(
		t.Context(),
		TaskSpec{
			Argv: []string{"sh", "-c", "for i in $(seq 1000); do echo line $i; done; echo $A >&2; (" + napping("988.1") + " &) ; exit 6"},
			Env:  map[string]string{"A": "b"},
		},
		nil,
	)
	require.NoError(t, err)
	require.Positive(t, pid)
	exit, err := c.WaitTask(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 6, exit.Code)
	again, err := c.WaitTask(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, exit, again)
	b, err := os.ReadFile(filepath.Join(logs, "web.stderr.0"))
	require.NoError(t, err)
	require.Equal(t, "b\n", string(b))
	names, err := filepath.Glob(filepath.Join(logs, "web.stdout.*"))
	require.NoError(t, err)
	require.Len(t, names, 3)
	require.Empty(t, processesLike(napping("988.1")))
}

func TestTaskThatCannotStart(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	_, err := c.StartTask(t.Context(), TaskSpec{Argv: []string{"/no/such"}}, nil)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "command not found: /no/such")
	_, err = c.StartTask(t.Context(), TaskSpec{Argv: []string{"true"}, User: "nobody-here"}, nil)
	require.ErrorContains(t, err, `unknown user "nobody-here"`)
	_, err = c.StartTask(t.Context(), TaskSpec{Argv: []string{"true"}}, nil)
	require.NoError(t, err)
}

func TestStopKillsAfterTheTimeout(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	ready := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	_, err := c.StartTask(
		t.Context(),
		TaskSpec{Argv: []string{"sh", "-c", "trap '' TERM; echo > " + ready + "; while :; do " + napping("988.2") + "; done"}},
		nil,
	)
	require.NoError(t, err)
	_, err = os.ReadFile(ready) // the trap is set
	require.NoError(t, err)
	require.NoError(t, c.StopTask(t.Context(), "", 100*time.Millisecond))
	exit, err := c.WaitTask(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 137, exit.Code)
	require.Equal(t, 9, exit.Signal)
	require.Empty(t, processesLike(napping("988.2")))
}

func TestAgentRestart(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	first, state := launch(t, withLogs(t, logs))
	_, err := first.StartTask(t.Context(), TaskSpec{Argv: []string{"sh", "-c", "sleep 0.3; echo still here; exit 5"}}, nil)
	require.NoError(t, err)
	release := filepath.Join(t.TempDir(), "release")
	require.NoError(t, syscall.Mkfifo(release, 0o600))
	spec := sh("echo before; read x < " + release + "; echo after; exit 8") // not a sleep: the reader may be slower
	spec.ID = "x"
	s, err := first.StartExecution(t.Context(), spec)
	require.NoError(t, err)
	awaitOutput(t, s, "before\n")
	require.NoError(t, first.Close()) // what kill -9 of the agent looks like from the supervisor
	_, err = s.Next(t.Context())
	require.Equal(t, drover.Gone, drover.CodeOf(err))
	require.ErrorIs(t, err, driver.ErrGone)

	second, err := Connect(t.Context(), SocketPath(state), options())
	require.NoError(t, err)
	defer second.Close()
	exit, err := second.WaitTask(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 5, exit.Code)
	b, err := os.ReadFile(filepath.Join(logs, "web.stdout.0"))
	require.NoError(t, err)
	require.Equal(t, "still here\n", string(b))
	require.NoError(t, os.WriteFile(release, []byte("go\n"), 0o600))
	s, err = second.AttachExecution(t.Context(), "x", execution.Offsets{Stdout: 7})
	require.NoError(t, err)
	r := collect(t, s)
	require.Equal(t, "after\n", string(r.stdout))
	require.Equal(t, 8, r.receipt.ExitCode)
	require.False(t, r.skipped)
}

func TestExecutionsWithoutAnAgentEndAfterTheGrace(t *testing.T) {
	t.Parallel()
	first, state := launch(t, func(cfg *LaunchConfig) { cfg.Grace = 200 * time.Millisecond })
	bound := 0
	for id, detach := range map[string]time.Duration{"bound": 0, "free": -1} {
		spec := execution.Spec{ID: id, Argv: []string{"sleep", "985.1"}, Detach: detach}
		s, err := first.StartExecution(t.Context(), spec)
		require.NoError(t, err)
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		require.True(t, f.Started)
		if id == "bound" {
			bound = f.Pid
		}
	}
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return syscall.Kill(bound, 0) == syscall.ESRCH }, time.Minute, 20*time.Millisecond)
	second, err := Connect(t.Context(), SocketPath(state), options())
	require.NoError(t, err)
	defer second.Close()
	s, err := second.AttachExecution(t.Context(), "bound", execution.Offsets{})
	require.NoError(t, err)
	r := collect(t, s)
	require.Equal(t, execution.CauseKilled, r.receipt.Cause)
	list, err := second.Executions(t.Context())
	require.NoError(t, err)
	running := 0
	for _, x := range list {
		if x.Running {
			running++
			require.Equal(t, "free", x.ID)
		}
	}
	require.Equal(t, 1, running)
}

// A receipt that was read is kept until it is said to be safe, by Close: its reader may be killed in between.
func TestAReceiptIsKeptUntilClose(t *testing.T) {
	t.Parallel()
	first, state := launch(t, nil)
	s, err := first.StartExecution(t.Context(), execution.Spec{ID: "x", Argv: []string{"sh", "-c", "exit 7"}})
	require.NoError(t, err)
	require.Equal(t, 7, collect(t, s).receipt.ExitCode)
	require.NoError(t, first.Close()) // what kill -9 of the agent looks like from the supervisor

	second, err := Connect(t.Context(), SocketPath(state), options())
	require.NoError(t, err)
	defer second.Close()
	s, err = second.AttachExecution(t.Context(), "x", execution.Offsets{})
	require.NoError(t, err)
	require.Equal(t, 7, collect(t, s).receipt.ExitCode)
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool {
		list, err := second.Executions(t.Context())
		return err == nil && len(list) == 0
	}, time.Minute, 5*time.Millisecond)
}

func TestDetachedKeepsTheLastOutput(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	spec := sh("read x; head -c 3000000 /dev/zero; echo end; read y; exit 2")
	spec.ID, spec.Stdin, spec.Detach = "d", true, -1
	s, err := c.StartExecution(t.Context(), spec)
	require.NoError(t, err)
	require.NoError(t, s.Write(t.Context(), []byte("go\n")))
	require.NoError(t, s.Close())
	var got []byte
	s, err = c.AttachExecution(t.Context(), "d", execution.Offsets{})
	require.NoError(t, err)
	skipped := false
	for !bytes.HasSuffix(got, []byte("end\n")) {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		skipped = skipped || f.Skipped
		got = append(got, f.Data...)
	}
	require.NoError(t, s.Write(t.Context(), []byte("go\n")))
	r := collect(t, s)
	require.Equal(t, 2, r.receipt.ExitCode)
	require.Equal(t, int64(3000004), r.receipt.StdoutBytes)
	_ = skipped // both are right: it depends on who was faster
}

func TestCloseKillsWithoutDetach(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	s, err := c.StartExecution(t.Context(), execution.Spec{ID: "k", Argv: nap("985.3")})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool { return len(processesLike(napping("985.3"))) == 0 }, time.Minute, 10*time.Millisecond)
}

func TestShutdownEndsEverything(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	_, err := c.StartTask(
		t.Context(),
		TaskSpec{Argv: []string{"sh", "-c", fmt.Sprintf("setsid %[1]s & (setsid %[1]s &); %[1]s", napping("985.4"))}},
		nil,
	)
	require.NoError(t, err)
	s, err := c.StartExecution(t.Context(), execution.Spec{Argv: nap("985.4")})
	require.NoError(t, err)
	require.NoError(t, c.Shutdown(t.Context()))
	require.NoError(t, c.Shutdown(t.Context()))
	require.Empty(t, processesLike(napping("985.4")))
	for {
		f, err := s.Next(t.Context())
		if err != nil {
			require.True(t, drover.CodeOf(err) == drover.Gone || strings.Contains(err.Error(), "EOF"))
			break
		}
		if f.Receipt != nil {
			require.Equal(t, execution.CauseRunnerGone, f.Receipt.Cause)
		}
	}
	_, err = Connect(t.Context(), SocketPath(state), options())
	require.ErrorIs(t, err, driver.ErrGone)
	_, err = c.StartExecution(t.Context(), sh("true"))
	require.Equal(t, drover.Gone, drover.CodeOf(err))
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	_, err := c.StartTask(t.Context(), TaskSpec{Argv: []string{"sleep", "1000"}}, nil)
	require.NoError(t, err)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	_, err = c.WaitTask(ctx, nil)
	require.ErrorIs(t, err, stopped)
}
