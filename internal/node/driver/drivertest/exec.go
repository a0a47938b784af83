package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

// execChecks are the promises of driver.Execer. Those that need a real /bin/sh are left out for the fake driver, which only imitates a
// few commands.
func execChecks() []check {
	shell := []Ability{Shell}
	return []check{
		{"exec in a warm runner", execPool, nil},
		{"exec in a running task", execTask, nil},
		{"exec stdin and its end", execStdin, nil},
		{"exec of a command that does not exist", execUnknown, nil},
		{"exec as an unknown user", execUnknownUser, nil},
		{"exec is killed", execKill, nil},
		{"exec wall limit", execWall, nil},
		{"exec output limit", execOutputLimit, nil},
		{"exec id is in use", execConflict, nil},
		{"exec re-attach", execAttach, nil},
		{"exec ends with its runner", execRunnerGone, nil},
		{"many execs at once", execMany, nil},
		{"exec not executable, no such folder", execCannotStart, shell},
		{"exec signal", execSignal, shell},
		{"exec large output", execLarge, shell},
		{"exec kills what it left behind", execBackground, shell},
		{"exec keeps what it left behind on request", execKeepTree, shell},
		{"exec environment is not interpreted", execEnvironment, shell},
		{"exec after an agent restart", execRestart, shell},
		{"exec with a terminal", execTTY, []Ability{Shell, Terminal}},
		{"exec users", execUsers, []Ability{Shell, Users}},
	}
}

// execPool: streams arrive apart, the exit code is the command's, and neither an execution's end nor a cancelled Wait ends a warm runner.
func execPool(s *suite) {
	h := s.pool()
	r := s.exec(h, sh("echo out; echo err >&2; exit 3"))
	require.True(s.t, r.started)
	require.Equal(s.t, "out\n", string(r.stdout))
	require.Equal(s.t, "err\n", string(r.stderr))
	require.Equal(s.t, 3, r.receipt.ExitCode)
	require.Equal(s.t, execution.CauseExited, r.receipt.Cause)
	require.False(s.t, r.receipt.Truncated)
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	_, err := h.Wait(ctx)
	require.ErrorIs(s.t, err, context.Canceled, "the runner lives on")
}

// execTask: a task that runs a program of its own takes executions too, and lists none as running once they have ended.
func execTask(s *suite) {
	h := s.start(Program{Run: Long})
	r := s.exec(h, sh("exit 0"))
	require.Zero(s.t, r.receipt.ExitCode)
	require.NotZero(s.t, s.exec(h, sh("exit 1")).receipt.ExitCode)
	list, err := h.(driver.Execer).Executions(s.t.Context())
	require.NoError(s.t, err)
	for _, x := range list {
		require.False(s.t, x.Running)
	}
}

// execStdin sends 720 kB, more than pipes hold, with bytes that a terminal or a text protocol would change. Writing and reading happen at
// once, because cat would otherwise block on its output.
func execStdin(s *suite) {
	h := s.pool()
	spec := execution.Spec{Argv: []string{"cat"}, Stdin: true}
	session, err := h.(driver.Execer).StartExecution(s.t.Context(), spec)
	require.NoError(s.t, err)
	want := bytes.Repeat([]byte("\x00\xff binary \r\n"), 60_000)
	var wg sync.WaitGroup
	wg.Go(func() { // ends when all is written
		if err := session.Write(s.t.Context(), want); err != nil {
			s.t.Error(err)
		}
		if err := session.CloseStdin(s.t.Context()); err != nil {
			s.t.Error(err)
		}
	})
	r := collect(s.t, session, execution.Offsets{})
	wg.Wait()
	require.True(s.t, bytes.Equal(want, r.stdout))
	require.Zero(s.t, r.receipt.ExitCode)
}

// execUnknown: a missing command is a receipt with the shell's code 127 and no frame Started, not an error of StartExecution.
func execUnknown(s *suite) {
	r := s.exec(s.pool(), execution.Spec{Argv: []string{"no-such-command"}})
	require.Equal(s.t, execution.CauseStartFailed, r.receipt.Cause)
	require.Equal(s.t, 127, r.receipt.ExitCode)
	require.Contains(s.t, r.receipt.Error, "no-such-command")
	require.False(s.t, r.started)
}

// execUnknownUser: unlike a missing command, an unknown user is the caller's mistake, and no execution comes to be.
func execUnknownUser(s *suite) {
	_, err := s.pool().(driver.Execer).StartExecution(s.t.Context(), execution.Spec{Argv: []string{"true"}, User: "no-such-user"})
	require.Equal(s.t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(s.t, err, "unknown user")
}

// execKill: a signal with an unknown name is refused without harm; KILL gives its own cause, and 128 + 9 as the code.
func execKill(s *suite) {
	session, err := s.pool().(driver.Execer).StartExecution(s.t.Context(), execution.Spec{Argv: []string{"sleep", "600"}})
	require.NoError(s.t, err)
	require.Equal(s.t, drover.Invalid, drover.CodeOf(session.Signal(s.t.Context(), "NONSENSE")))
	require.NoError(s.t, session.Signal(s.t.Context(), "KILL"))
	r := collect(s.t, session, execution.Offsets{})
	require.Equal(s.t, execution.CauseKilled, r.receipt.Cause)
	require.Equal(s.t, 137, r.receipt.ExitCode)
}

// execWall: what was printed before the limit is delivered, and a time-out is never an exit with 0.
func execWall(s *suite) {
	spec := sh("echo before; sleep 600; echo after")
	spec.Limits.Wall = 100 * time.Millisecond
	r := s.exec(s.pool(), spec)
	require.Equal(s.t, execution.CauseTimeout, r.receipt.Cause)
	require.NotZero(s.t, r.receipt.ExitCode)
	require.Equal(s.t, "before\n", string(r.stdout))
}

// execOutputLimit: output beyond the limit is dropped and said to be truncated. The command still ends by itself here, since it stops
// writing; endlessOutput tries one that does not.
func execOutputLimit(s *suite) {
	spec := sh("yes 2>/dev/null | head -n 100000; exit 6")
	if _, fake := s.Missing[Shell]; fake {
		spec = sh("yes 100000; exit 6")
	}
	spec.Limits.OutputBytes = 1001
	r := s.exec(s.pool(), spec)
	require.Len(s.t, r.stdout, 1001)
	require.True(s.t, r.receipt.Truncated)
	require.Equal(s.t, 6, r.receipt.ExitCode)
	require.Equal(s.t, execution.CauseExited, r.receipt.Cause)
}

// execConflict: an id names one execution of a runner, so that a request that was sent twice cannot run a command twice.
func execConflict(s *suite) {
	x := s.pool().(driver.Execer)
	spec := execution.Spec{ID: "same", Argv: []string{"sleep", "600"}}
	session, err := x.StartExecution(s.t.Context(), spec)
	require.NoError(s.t, err)
	_, err = x.StartExecution(s.t.Context(), spec)
	require.Equal(s.t, drover.Conflict, drover.CodeOf(err))
	_, err = x.AttachExecution(s.t.Context(), "other", execution.Offsets{})
	require.Equal(s.t, drover.NotFound, drover.CodeOf(err))
	require.NoError(s.t, session.Signal(s.t.Context(), "KILL"))
	collect(s.t, session, execution.Offsets{})
}

// execAttach: an execution with Detach -1 outlives its session. A second one continues in the middle of a stream, and its receipt counts
// all bytes, not only those it read.
func execAttach(s *suite) {
	x := s.pool().(driver.Execer)
	spec := sh("echo one; cat; echo two; exit 7")
	spec.ID, spec.Stdin, spec.Detach = "a", true, -1
	session, err := x.StartExecution(s.t.Context(), spec)
	require.NoError(s.t, err)
	until(s.t, session, "one\n")
	require.NoError(s.t, session.Close())
	session, err = x.AttachExecution(s.t.Context(), "a", execution.Offsets{Stdout: 2})
	require.NoError(s.t, err)
	require.NoError(s.t, session.Write(s.t.Context(), []byte("middle\n")))
	require.NoError(s.t, session.CloseStdin(s.t.Context()))
	r := collect(s.t, session, execution.Offsets{Stdout: 2})
	require.Equal(s.t, "e\nmiddle\ntwo\n", string(r.stdout))
	require.Equal(s.t, 7, r.receipt.ExitCode)
	require.Equal(s.t, int64(len("one\nmiddle\ntwo\n")), r.receipt.StdoutBytes)
}

// execRunnerGone: who follows an execution learns that its runner was destroyed, by a receipt or by the error Gone: which one comes
// depends on how far the supervisor got.
func execRunnerGone(s *suite) {
	h := s.pool()
	session, err := h.(driver.Execer).StartExecution(s.t.Context(), execution.Spec{Argv: []string{"sleep", "600"}})
	require.NoError(s.t, err)
	require.NoError(s.t, h.Destroy(s.t.Context()))
	for {
		f, err := session.Next(s.t.Context())
		if err != nil {
			require.Equal(s.t, drover.Gone, drover.CodeOf(err))
			return
		}
		if f.Receipt != nil {
			require.Equal(s.t, execution.CauseRunnerGone, f.Receipt.Cause)
			require.NotZero(s.t, f.Receipt.ExitCode)
			return
		}
	}
}

// execMany: each session gets its own output and exit code when many run at once.
func execMany(s *suite) {
	h := s.pool()
	many := s.Many
	if many == 0 {
		many = 50
	}
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() { // ends with its execution
			session, err := h.(driver.Execer).StartExecution(s.t.Context(), sh(fmt.Sprintf("echo %d; exit %d", i, i)))
			if err != nil {
				s.t.Error(err)
				return
			}
			r := collect(s.t, session, execution.Offsets{})
			if string(r.stdout) != fmt.Sprintf("%d\n", i) || r.receipt.ExitCode != i {
				s.t.Errorf("%d: %q, %v", i, r.stdout, r.receipt)
			}
		})
	}
	wg.Wait()
}

// execCannotStart: a file that may not be executed gives 126, as in a shell, and a missing working directory is named.
func execCannotStart(s *suite) {
	h := s.pool()
	r := s.exec(h, execution.Spec{Argv: []string{"/etc/passwd"}})
	require.Equal(s.t, 126, r.receipt.ExitCode)
	require.Equal(s.t, execution.CauseStartFailed, r.receipt.Cause)
	r = s.exec(h, execution.Spec{Argv: []string{"true"}, WorkDir: "/no/such/folder"})
	require.Equal(s.t, execution.CauseStartFailed, r.receipt.Cause)
	require.Contains(s.t, r.receipt.Error, "/no/such/folder")
}

// execSignal: a signal that is sent reaches the command's handler. A command that dies of a signal of its own is CauseSignalled, unlike
// one that was killed on request.
func execSignal(s *suite) {
	session, err := s.pool().(driver.Execer).StartExecution(
		s.t.Context(),
		sh(`trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done`),
	)
	require.NoError(s.t, err)
	ready := until(s.t, session, "ready\n")
	require.NoError(s.t, session.Signal(s.t.Context(), "SIGINT"))
	r := collect(s.t, session, execution.Offsets{Stdout: int64(len(ready))})
	require.Equal(s.t, 9, r.receipt.ExitCode)
	r = s.exec(s.pool(), sh("kill -SEGV $$"))
	require.Equal(s.t, execution.CauseSignalled, r.receipt.Cause)
	require.Equal(s.t, 11, r.receipt.Signal)
	require.Equal(s.t, 139, r.receipt.ExitCode)
}

// execLarge: 64 MB pass without loss or change; a reader that is slower than the command only slows it down.
func execLarge(s *suite) {
	const size = 64 << 20
	r := s.exec(s.pool(), sh(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' 'z'; echo end >&2", size)))
	require.Len(s.t, r.stdout, size)
	require.Equal(s.t, size, bytes.Count(r.stdout, []byte("z")))
	require.Equal(s.t, "end\n", string(r.stderr))
	require.Equal(s.t, int64(size), r.receipt.StdoutBytes)
}

// execBackground: without KeepTree an execution ends with its command, and takes along children in other sessions and those adopted by
// another parent.
func execBackground(s *suite) {
	h := s.pool()
	r := s.exec(h, sh("sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600; :' &); echo done"))
	require.Equal(s.t, "done\n", string(r.stdout))
	require.Zero(s.t, r.receipt.ExitCode)
	require.Less(s.t, r.receipt.Wall, patience)
	var left []string
	require.Eventually(s.t, func() bool { // killed processes die when the kernel gets to them
		left = left[:0]
		for _, l := range leftovers(s.alloc, s.root) {
			if strings.Contains(l, "sleep 600") {
				left = append(left, l)
			}
		}
		return len(left) == 0
	}, patience, 10*time.Millisecond, "%v", left)
}

// execKeepTree: with KeepTree, a process left in the background is there for the next execution.
func execKeepTree(s *suite) {
	h := s.pool()
	spec := sh("sleep 600 >/dev/null 2>&1 & echo $!")
	spec.KeepTree = true
	pid := strings.TrimSpace(string(s.exec(h, spec).stdout))
	require.Equal(s.t, "there\n", string(s.exec(h, sh("kill -0 "+pid+" && echo there")).stdout))
}

// execEnvironment: values reach the program byte for byte; no shell, template or line protocol on the way may interpret them.
func execEnvironment(s *suite) {
	spec := sh(`printf '%s|' "$A" "$B" "$C"`)
	spec.Env = map[string]string{"A": "two words", "B": "$HOME `id` \"q\" 'q'", "C": "line\nline"}
	require.Equal(s.t, "two words|$HOME `id` \"q\" 'q'|line\nline|", string(s.exec(s.pool(), spec).stdout))
}

// execRestart: a new agent finds the execution that the former one started, and reads on from where that stopped. The former's session is
// closed last, so it cannot disturb.
func execRestart(s *suite) {
	h := s.pool()
	spec := sh("echo before; sleep 0.3; echo after; exit 8")
	spec.ID = "r"
	session, err := h.(driver.Execer).StartExecution(s.t.Context(), spec)
	require.NoError(s.t, err)
	until(s.t, session, "before\n")
	after, err := s.New(s.t).Attach(s.t.Context(), h.State())
	require.NoError(s.t, err)
	s.handles = append(s.handles, after)
	again, err := after.(driver.Execer).AttachExecution(s.t.Context(), "r", execution.Offsets{Stdout: 7})
	require.NoError(s.t, err)
	r := collect(s.t, again, execution.Offsets{Stdout: 7})
	require.Equal(s.t, "after\n", string(r.stdout))
	require.Equal(s.t, 8, r.receipt.ExitCode)
	_ = session.Close()
}

// execTTY: the command sees a terminal of the given size and its changes. TTYStderr keeps stderr apart, which a terminal by itself would
// mix in.
func execTTY(s *suite) {
	spec := execution.Spec{
		Argv: []string{"sh", "-c", "stty size; test -t 0 && test -t 1 && echo terminal; read x; stty size; echo got $x; echo apart >&2"},
		TTY:  true, TTYStderr: true, Stdin: true, Size: execution.WindowSize{Rows: 10, Cols: 33},
	}
	session, err := s.pool().(driver.Execer).StartExecution(s.t.Context(), spec)
	require.NoError(s.t, err)
	out := until(s.t, session, "terminal\r\n")
	require.NoError(s.t, session.Resize(s.t.Context(), execution.WindowSize{Rows: 11, Cols: 44}))
	require.NoError(s.t, session.Write(s.t.Context(), []byte("word\n")))
	r := collect(s.t, session, execution.Offsets{Stdout: int64(len(out))})
	out += string(r.stdout)
	require.Contains(s.t, out, "10 33\r\n")
	require.Contains(s.t, out, "11 44\r\n")
	require.Contains(s.t, out, "got word\r\n")
	require.Equal(s.t, "apart\n", string(r.stderr))
	require.Zero(s.t, r.receipt.ExitCode)
}

// execUsers: "uid:gid" needs no entry in the task's files of users, stderr can be opened again by that user, and Privileged is uid 0.
func execUsers(s *suite) {
	h := s.pool()
	spec := sh("id -u; id -g; echo x > /dev/stderr")
	spec.User = "1234:77"
	r := s.exec(h, spec)
	require.Equal(s.t, "1234\n77\n", string(r.stdout))
	require.Equal(s.t, "x\n", string(r.stderr))
	spec = sh("id -u")
	spec.Privileged = true
	require.Equal(s.t, "0", strings.TrimSpace(string(s.exec(h, spec).stdout)))
}
