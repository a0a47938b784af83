package drivertest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

// What hostile programs try. After each of them the suite counts what is left on the machine.
func hostileChecks() []check {
	programs := []Ability{Programs, Shell}
	alone := []Ability{Programs, Shell, Isolation}
	return []check{
		{"hostile: reaches for the supervisor", reachSupervisor, slices.Concat(alone, []Ability{Guard})},
		{"hostile: signals the supervisor", signalSupervisor, slices.Concat(alone, []Ability{Guard})},
		{"hostile: reaches for the kernel", reachKernel, alone},
		{"hostile: looks for others", lookAround, alone},
		{"hostile: links for the agent to follow", plantedLinks, slices.Concat(alone, []Ability{Links})},
		{"hostile: fork bomb", forkBomb, programs},
		{"hostile: memory bomb", memoryBomb, programs},
		{"hostile: memory bomb as the task", memoryBombTask, []Ability{Programs, Shell, Groups}},
		{"hostile: endless output", endlessOutput, programs},
		{"hostile: endless logs", endlessLogs, programs},
		{"hostile: processes that hide", hiding, programs},
		{"hostile: descriptors held after the exit", heldDescriptors, programs},
		{"hostile: links instead of logs", plantedLogs, programs},
		{"hostile: executions nobody follows", abandoned, programs},
	}
}

// alive expects that the runner still takes executions after what a hostile program did in it.
func (s *suite) alive(h driver.Handle) {
	s.t.Helper()
	require.Equal(s.t, "alive\n", string(s.exec(h, sh("echo alive")).stdout))
}

// forkBomb: the limits of processes and of time hold a fork bomb, and neither its own runner nor the one beside it is lost.
func forkBomb(s *suite) {
	bomb, neighbour := s.pool(), s.pool()
	spec := sh("f() { f | f & }; (f) & while :; do :; done")
	spec.Limits = drover.Limits{Pids: 40, Wall: time.Second}
	r := s.exec(bomb, spec)
	// At the limit of processes the shell may die before the time is over, so both causes are right.
	require.Contains(s.t, []execution.Cause{execution.CauseTimeout, execution.CauseKilled}, r.receipt.Cause)
	require.NotZero(s.t, r.receipt.ExitCode)
	s.alive(neighbour)
	s.alive(bomb)
}

// memoryBomb: tail keeps a line that never ends in memory. Without control groups the command may end in any way but well.
func memoryBomb(s *suite) {
	bomb, neighbour := s.pool(), s.pool()
	spec := sh("exec tail /dev/zero")
	spec.Limits.MemoryMB = 32
	r := s.exec(bomb, spec)
	require.NotZero(s.t, r.receipt.ExitCode)
	if _, none := s.Missing[Groups]; !none {
		require.Equal(s.t, execution.CauseOOM, r.receipt.Cause)
		require.Equal(s.t, 137, r.receipt.ExitCode)
	}
	s.alive(neighbour)
	s.alive(bomb)
}

// memoryBombTask: the kernel's kill at the task's own limit is told as OOMKilled, which Nomad shows in the task's event.
func memoryBombTask(s *suite) {
	spec := s.spec(Program{Script: "exec tail /dev/zero"})
	spec.MemoryMB = 48
	exit := s.wait(s.startSpec(spec))
	require.True(s.t, exit.OOMKilled, "%+v", exit)
	require.NotZero(s.t, exit.Code)
}

// endlessOutput: a command that goes on writing past its limit is ended, with a cause of its own.
func endlessOutput(s *suite) {
	h := s.pool()
	spec := sh("exec yes")
	spec.Limits.OutputBytes = 1 << 20
	r := s.exec(h, spec)
	require.Len(s.t, r.stdout, 1<<20)
	require.Equal(s.t, execution.CauseOutputLimit, r.receipt.Cause)
	require.NotZero(s.t, r.receipt.ExitCode)
	s.alive(h)
}

// endlessLogs: a task that writes without end takes no more of the disk than its log files may.
func endlessLogs(s *suite) {
	spec := s.spec(Program{Script: "yes | head -c 30000000; sleep 600"})
	spec.Log.MaxFiles, spec.Log.MaxFileSize = 2, 1<<20
	s.startSpec(spec)
	last := func() bool { // the third file and those after it push the first out
		_, err := os.Stat(filepath.Join(spec.Log.Dir, "web.stdout.0"))
		return os.IsNotExist(err)
	}
	require.Eventually(s.t, last, patience, 5*time.Millisecond)
	names, err := filepath.Glob(filepath.Join(spec.Log.Dir, "web.stdout.*"))
	require.NoError(s.t, err)
	require.LessOrEqual(s.t, len(names), 3)
	// A file may grow a little over its size to end with a whole line.
	for _, n := range names {
		if st, err := os.Stat(n); err == nil {
			require.LessOrEqual(s.t, st.Size(), int64(1<<20)+64<<10, n)
		}
	}
}

// hiding: own session, no environment to know it by, no parent, deaf to signals, forking all the time.
const hide = `for i in 1 2 3; do env -i PATH=$PATH setsid sh -c 'trap "" TERM HUP INT QUIT;
	while :; do (sleep 0.01; sleep 4242 & sleep 0.05) & wait $!; done' MARK </dev/null >/dev/null 2>&1 & done; sleep 0.2; echo hidden`

// hiding: such processes end with an execution, with a kept one's runner, and with a task that is stopped. The suite's close counts them.
func hiding(s *suite) {
	hide := strings.ReplaceAll(hide, "MARK", s.alloc) // as an argument, which leftovers sees
	h := s.pool()
	require.Equal(s.t, "hidden\n", string(s.exec(h, sh(hide)).stdout))
	kept := sh(hide)
	kept.KeepTree = true
	require.Equal(s.t, "hidden\n", string(s.exec(h, kept).stdout))
	s.alive(h)
	task := s.start(Program{Script: hide + "; sleep 600"})
	require.Eventually(s.t, func() bool { return s.log("stdout") == "hidden\n" }, patience, 5*time.Millisecond)
	require.NoError(s.t, task.Stop(s.t.Context(), "", 10*time.Millisecond))
	require.NotZero(s.t, s.wait(task).Code)
}

// heldDescriptors: a command's exit is told at once, although a process of its own still holds stdout and stderr open.
func heldDescriptors(s *suite) {
	h := s.pool()
	for _, keep := range []bool{false, true} {
		spec := sh("(setsid sleep 600 &) ; echo out; echo err >&2; exit 3")
		spec.KeepTree = keep
		start := time.Now()
		r := s.exec(h, spec)
		require.Equal(s.t, "out\n", string(r.stdout))
		require.Equal(s.t, "err\n", string(r.stderr))
		require.Equal(s.t, 3, r.receipt.ExitCode)
		require.Less(s.t, time.Since(start), patience/2, "the exit waited for who holds the descriptors")
	}
}

// plantedLogs: who may write where its logs are cannot make the supervisor write elsewhere.
func plantedLogs(s *suite) {
	victim := filepath.Join(s.root, "victim")
	require.NoError(s.t, os.WriteFile(victim, []byte("untouched"), 0o666)) // anybody may write, if it gets there
	spec := s.spec(Program{Script: "echo first; read x < /dev/null; sleep 0.3; yes | head -c 3000000; sleep 600"})
	spec.Log.MaxFiles, spec.Log.MaxFileSize = 3, 1<<20
	for _, n := range []string{"web.stdout.1", "web.stdout.2", "web.stderr.0"} {
		// The names are those that rotation will come to, and the other stream's first.
		require.NoError(s.t, os.Symlink(victim, filepath.Join(spec.Log.Dir, n)))
	}
	h, err := s.d.Start(s.t.Context(), spec)
	if err == nil { // an error that says so is fine as well
		s.handles = append(s.handles, h)
		require.Eventually(s.t, func() bool {
			st, err := os.Stat(filepath.Join(spec.Log.Dir, "web.stdout.0"))
			return os.IsNotExist(err) || err == nil && st.Size() > 0
		}, patience, 5*time.Millisecond)
		require.NoError(s.t, h.Stop(s.t.Context(), "KILL", time.Second))
	}
	data, err := os.ReadFile(victim)
	require.NoError(s.t, err)
	require.Equal(s.t, "untouched", string(data))
}

// abandoned: sessions that are closed at once take their executions with them.
func abandoned(s *suite) {
	h := s.pool()
	x := h.(driver.Execer)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() { // ends when the session is closed
			session, err := x.StartExecution(s.t.Context(), sh("trap '' TERM HUP; sleep 600 & wait; sleep 600"))
			if err == nil {
				_ = session.Close()
			}
		})
	}
	all.Wait()
	require.Eventually(s.t, func() bool {
		list, err := x.Executions(context.Background())
		running := 0
		for _, e := range list {
			if e.Running {
				running++
			}
		}
		return err == nil && running == 0
	}, patience, 10*time.Millisecond)
	s.alive(h)
}
