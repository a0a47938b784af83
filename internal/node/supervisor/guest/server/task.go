package server

import (
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// task is the main process.
type task struct {
	child   *child
	tree    tree
	started time.Time
	pumps   sync.WaitGroup
	done    chan struct{}
	receipt execution.Receipt // set before done is closed

	mu      sync.Mutex
	cause   execution.Cause      // guarded by mu
	hearers map[chan string]bool // of notices; guarded by mu
	losing  map[string]string    // streams whose log is not written, and the notice of it; guarded by mu
}

// startTask starts the main process, once. Errors: Conflict, Invalid with the reason.
func (s *Server) startTask(req wire.Task, fds []int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping || s.idle:
		closeAll(fds)
		return 0, errStopping
	case s.task != nil:
		closeAll(fds)
		return 0, drover.Errorf(drover.Conflict, "the main task was started before")
	case len(req.Argv) == 0 || req.Argv[0] == "":
		closeAll(fds)
		return 0, drover.Errorf(drover.Invalid, "the main task has no command")
	}
	t := &task{done: make(chan struct{}), tree: tree{procs: -1, fds: fds}}
	err := s.runTask(t, req)
	if err != nil {
		t.tree.close()
		if f := (*startFailure)(nil); errors.As(err, &f) {
			return 0, drover.Errorf(drover.Invalid, "%s", f.reason)
		}
		return 0, err
	}
	s.task = t
	return t.child.pid, nil
}

func (s *Server) runTask(t *task, req wire.Task) error {
	user, home, err := s.resolveUser(req.User, false)
	if err != nil {
		return err
	}
	env := environment(map[string]string{"PATH": defaultPath, "HOME": home}, req.Env)
	dir := req.WorkDir
	if dir == "" {
		dir = s.boot().WorkDir
	} else if !path.IsAbs(dir) {
		dir = path.Join(s.boot().WorkDir, dir)
	}
	file, errno := lookPath(req.Argv[0], dir, envValue(env, "PATH"))
	if errno != 0 {
		return explainStart(&spawn.Error{Step: spawn.StepExec, Errno: errno}, req.Argv[0], dir)
	}
	prog := spawn.Spec{
		Path: file, Argv: req.Argv, Env: env, Dir: dir, User: user, ResetOOM: true, Drop: s.boot().Drop,
		CgroupNamespace: s.boot().CgroupNamespace, Rlimits: []spawn.Rlimit{openFiles(0)},
	}
	for r, v := range req.Rlimits {
		prog.Rlimits = append(prog.Rlimits, both(r, v))
	}
	prog.Join, prog.Cgroup, t.tree.procs = groupFiles(t.tree.fds, req.Clone)
	io, logs, err := s.taskStdio(user)
	if err != nil {
		return err
	}
	defer io.closeTheirs()
	prog.Files = io.theirs
	t.started = s.clock.Now()
	if t.child, err = s.reaper.start(prog, true); err != nil {
		io.closeOurs()
		return explainStart(err, req.Argv[0], dir)
	}
	t.tree.leader = t.child.pid
	for i, f := range io.out {
		if f != nil {
			name := [...]string{"stdout", "stderr"}[i]
			logs[i].tell = func(text string) { t.notice(name, text, logs[i].lost > 0) }
			t.pumps.Go(func() { // ends at the end of the stream; waitTask sees to it that it has one
				pump(f, logs[i].write)
				_ = f.Close()
				logs[i].close()
			})
		}
	}
	go s.followTask(t, io.out) // ends with the task
	return nil
}

// taskStdio gives the task /dev/null as stdin and pipes to the log files, or /dev/null without logs.
func (s *Server) taskStdio(user *spawn.User) (*stdio, [2]*logFile, error) {
	var logs [2]*logFile
	if boot := s.boot(); s.logDir >= 0 {
		for i, name := range []string{"stdout", "stderr"} {
			l, err := openLog(s.logDir, fmt.Sprintf("%s.%s.", boot.LogTask, name), boot.LogMaxFiles, boot.LogMaxSize)
			if err != nil {
				return nil, logs, fmt.Errorf("opening the log file of %s: %w", name, err)
			}
			logs[i] = l
		}
		io, err := openStdio(execution.Spec{}, user)
		return io, logs, err
	}
	io := &stdio{}
	err := io.openStdin(false)
	if err == nil {
		var fd int
		fd, err = syscall.Open("/dev/null", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
		io.theirs = append(io.theirs, fd, fd)
	}
	return io, logs, err
}

// followTask waits for the task's end: what it left behind is killed, its output written, then the exit is visible.
func (s *Server) followTask(t *task, files [2]*os.File) {
	<-t.child.done
	wall := s.clock.Now().Sub(t.started)
	t.tree.kill(s.reaper, s.clock)
	deadline := s.clock.Now().Add(drainPatience)
	for _, f := range files {
		if f != nil {
			_ = f.SetReadDeadline(deadline)
		}
	}
	t.pumps.Wait()
	t.tree.close()
	orphans := s.reaper.settle(t.child)
	t.mu.Lock()
	t.receipt = ended(t.child, orphans, t.cause, execution.Spec{})
	t.mu.Unlock()
	t.receipt.StartedAt, t.receipt.Wall = t.started, wall
	close(t.done)
}

func (s *Server) mainTask() (*task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.task == nil {
		return nil, drover.Errorf(drover.Conflict, "no main task was started")
	}
	return s.task, nil
}

// signalTask signals the main task's process group; KILL its whole tree. Errors: Invalid, Conflict, Gone.
func (s *Server) signalTask(name string) error {
	sig, err := wire.ParseSignal(name)
	if err != nil {
		return err
	}
	t, err := s.mainTask()
	if err != nil {
		return err
	}
	if !s.reaper.signal(t.child, sig) {
		return drover.Errorf(drover.Gone, "the main task has ended")
	}
	if sig == unix.SIGKILL {
		go t.tree.kill(s.reaper, s.clock) // ends when the tree is dead, or after killPatience
	}
	return nil
}

// stopTask signals the main task, and kills its tree after the timeout. It returns when the task is over.
func (s *Server) stopTask(name string, timeout time.Duration) error {
	if name == "" {
		name = "SIGTERM"
	}
	sig, err := wire.ParseSignal(name)
	if err != nil {
		return err
	}
	t, err := s.mainTask()
	if err != nil {
		return err
	}
	if !s.reaper.signal(t.child, sig) {
		<-t.done
		return nil
	}
	timer := s.clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-t.done:
		return nil
	case <-timer.C():
	}
	s.reaper.signal(t.child, syscall.SIGKILL)
	t.tree.kill(s.reaper, s.clock)
	<-t.done
	return nil
}
