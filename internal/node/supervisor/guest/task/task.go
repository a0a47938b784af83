package task

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/logs"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Task is the main process.
type Task struct {
	launcher *program.Launcher
	child    *process.Child
	tree     *process.Tree
	input    *os.File // our end of an input that stays open; nil: it has ended before
	started  time.Time
	pumps    sync.WaitGroup
	done     chan struct{}
	receipt  execution.Receipt // set before done is closed

	mu      sync.Mutex
	cause   execution.Cause      // guarded by mu
	hearers map[chan string]bool // of notices; guarded by mu
	losing  map[string]string    // streams whose log is not written, and the notice of it; guarded by mu
}

// Start starts the main process. logDir is the open folder of its logs; -1: its output is thrown away. fds are the open
// files of its control group, if it has one; the task closes them, also when it fails. Errors: Invalid with the reason,
// Forbidden.
func Start(l *program.Launcher, logDir int, req wire.Task, fds []int) (*Task, error) {
	t := &Task{launcher: l, done: make(chan struct{}), tree: process.NewTree(fds)}
	err := t.run(logDir, req)
	if err == nil {
		return t, nil
	}
	t.tree.Close()
	if f := (*program.Failure)(nil); errors.As(err, &f) {
		return nil, drover.Errorf(drover.Invalid, "%s", f.Reason)
	}
	return nil, err
}

// Pid is the process's, as the guest sees it.
func (t *Task) Pid() int { return t.child.Pid }

// Done is closed when the process has ended, nothing of its tree is left, and its output is written.
func (t *Task) Done() <-chan struct{} { return t.done }

// Receipt says how it ended. It is known once Done is closed.
func (t *Task) Receipt() execution.Receipt { return t.receipt }

// run starts the process with its pumps and its follower. Errors: *program.Failure, Invalid, Forbidden, or those of the log files.
func (t *Task) run(logDir int, req wire.Task) error {
	if len(req.Argv) == 0 || req.Argv[0] == "" {
		return drover.Errorf(drover.Invalid, "the main task has no command")
	}
	env := []map[string]string{req.Env}
	if req.TTY {
		env = []map[string]string{{"TERM": "xterm"}, req.Env} // as docker has it
	}
	prog, err := t.launcher.Resolve(program.Command{Argv: req.Argv, Env: env, Dir: req.WorkDir, User: req.User})
	if err != nil {
		return err
	}
	prog.Rlimits = []spawn.Rlimit{program.OpenFiles(0)}
	for r, v := range req.Rlimits {
		prog.Rlimits = append(prog.Rlimits, program.Rlimit(r, v))
	}
	t.tree.Place(&prog, req.Clone)
	prog.TTY = req.TTY
	io, files, err := t.stdio(logDir, req, prog.User)
	if err != nil {
		return err
	}
	defer io.CloseTheirs()
	t.started = t.launcher.Clock.Now()
	if t.child, err = t.launcher.Start(prog, io, true); err != nil {
		closeLogs(files)
		return err
	}
	t.tree.Leader = t.child.Pid
	if io.TTY == nil {
		t.input = io.Stdin
	}
	for i, f := range io.Out {
		if f != nil {
			t.pump(f, files[i], [...]string{"stdout", "stderr"}[i])
		}
	}
	go t.follow(io.Out) // ends with the task
	return nil
}

// pump moves a stream to its log, or away if it has none.
func (t *Task) pump(f *os.File, to *logs.File, name string) {
	sink := func([]byte) {}
	if to != nil {
		to.Tell = func(text string, goesOn bool) { t.notice(name, text, goesOn) }
		sink = to.Write
	}
	t.pumps.Go(func() { // ends at the end of the stream; follow sees to it that it has one
		program.Pump(f, sink)
		_ = f.Close()
		if to != nil {
			to.Close()
		}
	})
}

// stdio gives the task pipes to the log files, or a terminal that is its stdout, and /dev/null as stdin unless that stays open. Without
// logs and without either it gets /dev/null.
func (t *Task) stdio(logDir int, req wire.Task, user *spawn.User) (*program.Stdio, [2]*logs.File, error) {
	var files [2]*logs.File
	asked := execution.Spec{TTY: req.TTY, Stdin: req.Input}
	if logDir < 0 {
		if req.TTY || req.Input {
			io, err := program.OpenStdio(asked, user)
			return io, files, err
		}
		io, err := program.NullStdio()
		return io, files, err
	}
	boot := t.launcher.Boot()
	streams := []string{"stdout", "stderr"}
	if req.TTY {
		streams = streams[:1]
	}
	for i, name := range streams {
		l, err := logs.Open(logDir, fmt.Sprintf("%s.%s.", boot.LogTask, name), boot.LogMaxFiles, boot.LogMaxSize)
		if err != nil {
			closeLogs(files)
			return nil, files, fmt.Errorf("opening the log file of %s: %w", name, err)
		}
		l.Now = t.launcher.Clock.Now
		files[i] = l
	}
	io, err := program.OpenStdio(asked, user)
	if err != nil {
		closeLogs(files)
	}
	return io, files, err
}

// closeLogs closes the files of a start that failed; after one that did not, the pumps do.
func closeLogs(files [2]*logs.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// follow waits for the task's end: what it left behind is killed, its output written, then the exit is visible.
func (t *Task) follow(files [2]*os.File) {
	clock, reaper := t.launcher.Clock, t.launcher.Reaper
	<-t.child.Done
	wall := clock.Now().Sub(t.started)
	// The tree goes first: with its writers dead, the pipes come to their end.
	t.tree.Kill(reaper, clock)
	deadline := clock.Now().Add(program.DrainPatience)
	for _, f := range files {
		if f != nil {
			_ = f.SetReadDeadline(deadline)
		}
	}
	t.pumps.Wait()
	if t.input != nil {
		_ = t.input.Close()
	}
	t.tree.Close()
	orphans := reaper.Settle(t.child)
	t.mu.Lock()
	t.receipt = program.Ended(t.child, orphans, t.cause, execution.Spec{})
	t.mu.Unlock()
	t.receipt.StartedAt, t.receipt.Wall = t.started, wall
	close(t.done)
}

// Signal signals the process group; KILL the whole tree. Errors: Invalid, Gone.
func (t *Task) Signal(name string) error {
	sig, err := wire.ParseSignal(name)
	if err != nil {
		return err
	}
	if !t.launcher.Reaper.Signal(t.child, sig) {
		return drover.Errorf(drover.Gone, "the main task has ended")
	}
	if sig == unix.SIGKILL {
		go t.tree.Kill(t.launcher.Reaper, t.launcher.Clock) // ends when the tree is dead, or gave up
	}
	return nil
}

// Stop sends a signal, SIGTERM if the name is "", and kills the tree after the timeout. It returns when the task is over.
// Errors: Invalid.
func (t *Task) Stop(name string, timeout time.Duration) error {
	if name == "" {
		name = "SIGTERM"
	}
	sig, err := wire.ParseSignal(name)
	if err != nil {
		return err
	}
	if !t.launcher.Reaper.Signal(t.child, sig) {
		<-t.done
		return nil
	}
	timer := t.launcher.Clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-t.done:
		return nil
	case <-timer.C():
	}
	t.launcher.Reaper.Signal(t.child, syscall.SIGKILL)
	t.tree.Kill(t.launcher.Reaper, t.launcher.Clock)
	<-t.done
	return nil
}
