package executions

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// stream is stdout or stderr of an execution. Guarded by the execution's mu.
type stream struct {
	ring
	total     int64 // written by the program
	truncated bool  // by the output limit
	acked     int64 // by every reader that there was
}

// command is one execution, from its start to when its exit was fetched.
//
//	starting → running → (exited: tree killed, pipes drained) → finished → forgotten
type command struct {
	// Constant.
	*program.Launcher
	table   *Table
	spec    execution.Spec
	child   *process.Child
	tree    *process.Tree
	started time.Time
	stdio   *program.Stdio // our ends
	pumps   sync.WaitGroup
	values  []string // of its secrets, until it is started
	masked  []string // values that its output does not have
	secrets secretFiles

	mu                  sync.Mutex
	cond                *sync.Cond
	out                 [2]stream // stdout, stderr
	sessions            map[*Session]bool
	hold                time.Time // without sessions: output is kept (and the program slowed) until then
	wallTimer, cpuTimer clock.Timer
	treeTimer           clock.Timer
	reason              string        // of a kill that needs one
	leaving             clock.Timer   // ends it when nobody comes back
	usedCPU             time.Duration // by the whole tree, as far as somebody looked
	cause               execution.Cause
	receipt             *execution.Receipt
	read                bool // its end was read: only its output is kept
	size                int  // of that, in bytes of memory; guarded by the table's mu

	feeding sync.Mutex // held while stdin is written

	stdinMu sync.Mutex // guards what follows
	stdin   *os.File   // nil when closed
	taken   int64      // bytes that the program was given, or is being given
	feeder  *Session   // whose bytes count: the session that came last
}

// describe returns a copy, with a receipt once the execution has finished.
func (x *command) describe() execution.Execution {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := execution.Execution{ID: x.spec.ID, Spec: x.spec, Pid: x.child.Pid, Running: x.receipt == nil, Taken: x.read}
	if x.receipt != nil {
		d.Receipt = new(*x.receipt)
	}
	return d
}

// wait follows the command to its end. It runs in its own goroutine.
func (x *command) wait(files [2]*os.File) {
	<-x.child.Done
	x.mu.Lock()
	for _, t := range []clock.Timer{x.wallTimer, x.cpuTimer, x.treeTimer} {
		if t != nil {
			t.Stop()
		}
	}
	wall := x.Clock.Now().Sub(x.started)
	x.mu.Unlock()
	if !x.spec.KeepTree {
		x.tree.Kill(x.Reaper, x.Clock)
	}
	// With its writers dead a pipe is at its end. Something unkillable, or a tree that is kept, may still hold it.
	now := x.Clock.Now()
	for _, f := range files {
		switch {
		case f == nil:
		case f == x.stdio.TTY && !x.spec.KeepTree:
			_ = f.SetReadDeadline(now.Add(ttyPatience))
		default:
			_ = f.SetReadDeadline(now.Add(program.DrainPatience))
		}
	}
	x.pumps.Wait()
	x.removeSecrets()
	x.closeStdin()
	if x.stdio.TTY != nil {
		_ = x.stdio.TTY.Close()
	}
	x.tree.Close()
	x.finish(wall, x.Reaper.Settle(x.child))
}

// ttyPatience is how long a terminal may be read after the end of its program. Its last output may still be on its way inside the kernel,
// which does not end the stream before that.
const ttyPatience = 2 * time.Second

// finish writes the receipt when all output is in, and wakes the sessions, which deliver it. orphans is what descendants used whose
// parents had ended before them.
func (x *command) finish(wall time.Duration, orphans process.Used) {
	x.table.noteFinished(x.spec.ID) // before anybody can have read that
	x.mu.Lock()
	r := program.Ended(x.child, orphans, x.cause, x.spec)
	r.ExecutionID, r.StartedAt, r.Wall = x.spec.ID, x.started, wall
	// What polls saw of processes that nobody waited for counts too; the kernel's sum lacks them.
	r.UserCPU = max(r.UserCPU, x.usedCPU-r.SystemCPU)
	r.StdoutBytes, r.StderrBytes = x.out[0].total, x.out[1].total
	r.Truncated = x.out[0].truncated || x.out[1].truncated
	if r.Cause != execution.CauseExited {
		r.Error = x.reason
	}
	x.receipt = &r
	x.cond.Broadcast()
	unread := len(x.sessions) == 0
	x.mu.Unlock()
	x.table.finished()
	if unread {
		x.leaveAfter(x.keepTime())
	}
}

// markKilled sets the cause of the end, if there is none yet and it still runs.
func (x *command) markKilled(cause execution.Cause) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == "" && x.receipt == nil {
		select {
		case <-x.child.Done: // it ended by itself
		default:
			x.cause = cause
		}
	}
}

// kill ends the whole tree. wait then finishes it.
func (x *command) kill(cause execution.Cause) {
	// The cause is set before the kill, since wait may see the exit at once.
	x.markKilled(cause)
	x.Reaper.Signal(x.child, syscall.SIGKILL)
	x.tree.Kill(x.Reaper, x.Clock)
}

// signal signals the process group; KILL ends the tree. Errors: Invalid, Gone.
func (x *command) signal(name string) error {
	sig, err := wire.ParseSignal(name)
	if err != nil {
		return err
	}
	if sig == syscall.SIGKILL {
		x.kill(execution.CauseKilled)
		return nil
	}
	if !x.Reaper.Signal(x.child, sig) {
		return drover.Errorf(drover.Gone, "execution %q has ended", x.spec.ID)
	}
	return nil
}

// closeStdin closes the pipe once the command has ended. A terminal is one file for input and output, so wait closes that later.
func (x *command) closeStdin() {
	x.stdinMu.Lock()
	defer x.stdinMu.Unlock()
	if x.stdin != nil && x.stdin != x.stdio.TTY {
		_ = x.stdin.Close()
	}
	x.stdin = nil
}
