package task

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/guesttest"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// start starts a script as a main task, whose logs are in the folder.
func start(t *testing.T, dir, script string) *Task {
	t.Helper()
	return startAs(t, dir, script, wire.Task{})
}

// startAs is start for a task that has more than that.
func startAs(t *testing.T, dir, script string, req wire.Task) *Task {
	t.Helper()
	logDir := -1
	if dir != "" {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		logDir = fd
	}
	l := guesttest.Launcher(t, wire.Boot{WorkDir: "/", LogTask: "web"})
	req.Argv, req.Env = []string{"/bin/sh", "-c", script}, map[string]string{"NAME": "x"}
	task, err := Start(l, logDir, req, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = task.Signal("KILL") // it may have ended
		<-task.Done()
	})
	return task
}

func wait(t *testing.T, task *Task) execution.Receipt {
	t.Helper()
	select {
	case <-task.Done():
		return task.Receipt()
	case <-time.After(guesttest.Patience):
		require.FailNow(t, "it does not end")
		return execution.Receipt{}
	}
}

// ready waits until the task has made a file.
func ready(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, guesttest.Patience, time.Millisecond)
}

func text(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(b)
}

// TestOutputIsInTheLogsBeforeTheEndIsKnown, also what children wrote.
func TestOutputIsInTheLogsBeforeTheEndIsKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := start(t, dir, `echo "hello $NAME"; sh -c 'echo oops >&2'; pwd; exit 3`)
	require.Positive(t, task.Pid())
	receipt := wait(t, task)
	require.Equal(t, 3, receipt.ExitCode)
	require.Equal(t, execution.CauseExited, receipt.Cause)
	require.False(t, receipt.StartedAt.IsZero())
	require.Equal(t, "hello x\n/\n", text(t, dir, "web.stdout.0"))
	require.Equal(t, "oops\n", text(t, dir, "web.stderr.0"))
}

func TestWithoutLogsOutputIsThrownAway(t *testing.T) {
	t.Parallel()
	require.Zero(t, wait(t, start(t, "", "yes | head -c 1000000; cat")).ExitCode, "and there is no input")
}

// TestWhatTheTaskLeavesBehindEndsWithIt, also when it holds the output open.
func TestWhatTheTaskLeavesBehindEndsWithIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	receipt := wait(t, start(t, dir, `sh -c 'echo $$; exec sleep 1000' & while ! [ -s `+dir+`/web.stdout.0 ]; do sleep 0.01; done`))
	require.Zero(t, receipt.ExitCode)
	pid, err := strconv.Atoi(strings.TrimSpace(text(t, dir, "web.stdout.0")))
	require.NoError(t, err)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

// TestTerminalOfATask is its stdin, stdout and stderr, and what it writes there is in the log of stdout.
func TestTerminalOfATask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal; echo oops >&2; (: < /dev/tty) && echo controlling; exit 3`
	require.Equal(t, 3, wait(t, startAs(t, dir, script, wire.Task{TTY: true})).ExitCode)
	require.Equal(t, "terminal\r\noops\r\ncontrolling\r\n", text(t, dir, "web.stdout.0"))
	require.NoFileExists(t, filepath.Join(dir, "web.stderr.0"))
	require.Equal(t, 3, wait(t, startAs(t, "", script, wire.Task{TTY: true})).ExitCode, "without logs")
}

// TestInputThatStaysOpen has no end and nothing in it, with a terminal and without.
func TestInputThatStaysOpen(t *testing.T) {
	t.Parallel()
	for _, tty := range []bool{false, true} {
		dir := t.TempDir()
		task := startAs(t, dir, "touch "+dir+"/ready; read x; echo ended", wire.Task{TTY: tty, Input: true})
		ready(t, dir+"/ready")
		require.NoError(t, task.Stop("", time.Minute))
		require.Equal(t, 143, task.Receipt().ExitCode)
		require.NotContains(t, text(t, dir, "web.stdout.0"), "ended")
		require.Zero(t, wait(t, startAs(t, "", "exec 0<&-", wire.Task{TTY: tty, Input: true})).ExitCode, "without logs")
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := start(t, "", `trap 'exit 7' USR1; touch `+dir+`/ready; while :; do sleep 0.01; done`)
	ready(t, dir+"/ready")
	require.Equal(t, drover.Invalid, drover.CodeOf(task.Signal("SIGNONE")))
	require.NoError(t, task.Signal("SIGUSR1"))
	require.Equal(t, 7, wait(t, task).ExitCode)
	require.Equal(t, drover.Gone, drover.CodeOf(task.Signal("SIGUSR1")))

	killed := start(t, "", "sleep 1000")
	require.NoError(t, killed.Signal("SIGKILL"))
	receipt := wait(t, killed)
	require.Equal(t, []int{137, 9}, []int{receipt.ExitCode, receipt.Signal})
	require.Equal(t, execution.CauseSignalled, receipt.Cause)
}

// TestAStop waits for the task's own end, and kills it after the timeout.
func TestAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	polite := start(t, "", `trap 'exit 5' INT; touch `+dir+`/polite; while :; do sleep 0.01; done`)
	ready(t, dir+"/polite")
	require.Equal(t, drover.Invalid, drover.CodeOf(polite.Stop("X", 0)))
	require.NoError(t, polite.Stop("INT", time.Hour))
	require.Equal(t, 5, polite.Receipt().ExitCode)
	require.NoError(t, polite.Stop("", time.Hour), "again: it has ended")

	stubborn := start(t, "", `trap '' TERM; touch `+dir+`/stubborn; while :; do sleep 0.01; done`)
	ready(t, dir+"/stubborn")
	require.NoError(t, stubborn.Stop("", 10*time.Millisecond))
	require.Equal(t, 9, stubborn.Receipt().Signal)

	plain := start(t, "", "sleep 1000")
	require.NoError(t, plain.Stop("", time.Hour))
	require.Equal(t, 15, plain.Receipt().Signal)
}

func TestTasksThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	l := guesttest.Launcher(t, wire.Boot{LogTask: "web"})
	dir := t.TempDir()
	logDir, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(logDir)
	for what, c := range map[string]struct {
		task wire.Task
		text string
	}{
		"no command":   {wire.Task{}, "no command"},
		"an empty one": {wire.Task{Argv: []string{""}}, "no command"},
		"none there":   {wire.Task{Argv: []string{"none-such"}}, "command not found: none-such"},
		"no folder":    {wire.Task{Argv: []string{"/bin/true"}, WorkDir: "/none"}, "no such directory: /none"},
		"no user":      {wire.Task{Argv: []string{"/bin/true"}, User: "nobody-here"}, "nobody-here"},
	} {
		var pipe [2]int
		require.NoError(t, syscall.Pipe2(pipe[:], syscall.O_CLOEXEC))
		_, err := Start(l, logDir, c.task, pipe[1:])
		require.Equal(t, drover.Invalid, drover.CodeOf(err), what)
		require.ErrorContains(t, err, c.text, what)
		read := os.NewFile(uintptr(pipe[0]), "group")
		_, err = io.ReadAll(read) // ends, as the files of the group are closed
		require.NoError(t, err)
		require.NoError(t, read.Close())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "web.stderr.0")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "web.stderr.0"), 0o755))
	_, err = Start(l, logDir, wire.Task{Argv: []string{"/bin/true"}}, nil)
	require.ErrorContains(t, err, "opening the log file of stderr")
}

func TestLimitsOfATask(t *testing.T) {
	t.Parallel()
	l := guesttest.Launcher(t, wire.Boot{})
	task, err := Start(l, -1, wire.Task{
		Argv: []string{"/bin/sh", "-c", `[ "$(ulimit -c)" = 0 ] && [ "$(ulimit -n)" -le 1048576 ]`}, Rlimits: map[int]uint64{unix.RLIMIT_CORE: 0},
	}, nil)
	require.NoError(t, err)
	require.Zero(t, wait(t, task).ExitCode)
}

// TestNotices: what happens is told to who listens, what still goes on also to who comes later.
func TestNotices(t *testing.T) {
	t.Parallel()
	task := &Task{}
	first, end := task.Hear()
	task.notice("stdout", "is lost", true)
	second, endSecond := task.Hear()
	require.Equal(t, "stdout: is lost", <-first)
	require.Equal(t, "stdout: is lost", <-second)
	task.notice("stdout", "is written again", false)
	require.Equal(t, "stdout: is written again", <-first)
	end()
	for range waitingNotices + 5 { // nobody reads them
		task.notice("stderr", "x", false)
	}
	require.Empty(t, first)
	require.Len(t, second, waitingNotices)
	endSecond()
	late, endLate := task.Hear()
	require.Empty(t, late, "nothing goes on")
	endLate()
}
