package server

import (
	"errors"
	"os"
	"path"
	"runtime"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// The exit codes of commands that could not be started, as shells have them.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// startExecution starts a command with its first session. A command that cannot be started is a receipt. fds are the
// files of its control group.
func (s *Server) startExecution(req wire.Exec, fds []int, first *session) (*command, *execution.Receipt, error) {
	spec := req.Spec
	x := &command{s: s, spec: spec, sessions: map[*session]bool{first: true}, tree: tree{procs: -1, fds: fds}}
	x.cond = newCond(&x.mu)
	if err := s.claim(x); err != nil {
		x.tree.close()
		return nil, nil, err
	}
	prog, err := s.program(spec)
	if err == nil {
		err = x.run(prog, req.Clone)
	}
	if err == nil {
		return x, nil, nil
	}
	s.forget(x)
	x.tree.close()
	if f := (*startFailure)(nil); errors.As(err, &f) {
		r := execution.Receipt{ExecutionID: spec.ID, ExitCode: f.exit, Cause: execution.CauseStartFailed, Error: f.reason, StartedAt: s.clock.Now()}
		return nil, &r, nil
	}
	return nil, nil, err
}

// claim takes the id. Errors: Invalid, Conflict, Gone.
func (s *Server) claim(x *command) error {
	if x.spec.ID == "" || len(x.spec.Argv) == 0 || x.spec.Argv[0] == "" {
		return drover.Errorf(drover.Invalid, "an execution needs an id and a command")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.idle {
		return errStopping
	}
	if s.execs[x.spec.ID] != nil {
		return drover.Errorf(drover.Conflict, "execution id %q is in use", x.spec.ID)
	}
	x.child = &child{done: make(chan struct{})} // until it has one: it can be listed already
	s.execs[x.spec.ID] = x
	return nil
}

// startFailure is a command that cannot be started: a result, not an error of ours.
type startFailure struct {
	exit   int
	reason string
}

func (f *startFailure) Error() string { return f.reason }

// program resolves user, environment, directory and path. Errors: Invalid, Forbidden, *startFailure.
func (s *Server) program(spec execution.Spec) (spawn.Spec, error) {
	user, home, err := s.resolveUser(spec.User, spec.Privileged)
	if err != nil {
		return spawn.Spec{}, err
	}
	base := map[string]string{"PATH": defaultPath, "HOME": home}
	if spec.TTY {
		base["TERM"] = "xterm"
	}
	env := environment(base, visible(s.boot().Env, spec.HideEnv), spec.Env)
	dir := spec.WorkDir
	if dir == "" {
		dir = s.boot().WorkDir
	} else if !path.IsAbs(dir) {
		dir = path.Join(s.boot().WorkDir, dir)
	}
	file, errno := lookPath(spec.Argv[0], dir, envValue(env, "PATH"))
	if errno != 0 {
		return spawn.Spec{}, explainStart(&spawn.Error{Step: spawn.StepExec, Errno: errno}, spec.Argv[0], dir)
	}
	return spawn.Spec{
		Path: file, Argv: spec.Argv, Env: env, Dir: dir, User: user, ResetOOM: true, Drop: s.boot().Drop,
		CgroupNamespace: s.boot().CgroupNamespace,
	}, nil
}

// explainStart turns a failed start into a result that a person understands.
func explainStart(err error, program, dir string) error {
	var e *spawn.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Step == spawn.StepExec && e.Errno == syscall.ENOENT:
		return &startFailure{exitNotFound, "command not found: " + program}
	case e.Step == spawn.StepExec && e.Errno == syscall.EACCES:
		return &startFailure{exitCannotRun, "permission denied: " + program}
	case e.Step == spawn.StepExec && e.Errno == syscall.ENOEXEC:
		return &startFailure{exitCannotRun, "not a program (no #! line?): " + program}
	case e.Step == spawn.StepUser && e.Errno == syscall.EINVAL: // not one of the user namespace
		return &startFailure{exitCannotRun, "no such user id in this sandbox (one that was made without root has only one)"}
	case e.Step == spawn.StepDir && e.Errno == syscall.ENOENT:
		return &startFailure{exitCannotRun, "no such directory: " + dir}
	case e.Step == spawn.StepDir && e.Errno == syscall.ENOTDIR:
		return &startFailure{exitCannotRun, "not a directory: " + dir}
	case e.Step == spawn.StepDir:
		return &startFailure{exitCannotRun, "cannot enter directory " + dir + ": " + e.Errno.Error()}
	default:
		return &startFailure{exitCannotRun, e.Error()}
	}
}

// run starts the program with its pipes or terminal, and everything that follows it. Errors: *startFailure.
func (x *command) run(prog spawn.Spec, clone bool) error {
	io, err := openStdio(x.spec, prog.User)
	if err != nil {
		return &startFailure{exitCannotRun, err.Error()}
	}
	defer io.closeTheirs()
	x.tree.mark = markKey + "=" + x.spec.ID
	prog.Files, prog.TTY, prog.Rlimits = io.theirs, x.spec.TTY, x.rlimits()
	prog.Join, prog.Cgroup, x.tree.procs = groupFiles(x.tree.fds, clone)
	if x.tree.procs < 0 {
		prog.Env = append(prog.Env, x.tree.mark)
	}
	x.started = x.s.clock.Now()
	c, err := x.s.reaper.start(prog, !x.spec.KeepTree)
	if err != nil {
		io.closeOurs()
		return explainStart(err, x.spec.Argv[0], prog.Dir)
	}
	x.mu.Lock()
	x.child, x.tty, x.stdin, x.tree.leader = c, io.tty, io.stdin, c.pid
	x.watch()
	x.mu.Unlock()
	for i, f := range io.out {
		if f == nil {
			continue
		}
		x.pumps.Go(func() { // ends at the end of the stream; wait sees to it that it has one
			pump(f, func(p []byte) { x.put(i, p) })
			if f != io.tty {
				_ = f.Close()
			}
		})
	}
	go x.wait(io.out) // ends with the program and its output
	return nil
}

// groupFiles sorts a control group's files: those to join, the folder to be born in, the one to read members from.
func groupFiles(fds []int, clone bool) (join []int, folder, procs int) {
	switch {
	case len(fds) == 0:
		return nil, 0, -1
	case clone && len(fds) > 1:
		return nil, fds[0], fds[1]
	default:
		return fds, 0, fds[0]
	}
}

// stdio are the two ends of a program's descriptors.
type stdio struct {
	owner  int // of pipes whose owner cannot be changed later; 0: ours
	theirs []int
	stdin  *os.File    // nil: /dev/null
	out    [2]*os.File // nil: none
	tty    *os.File
}

func openStdio(spec execution.Spec, user *spawn.User) (*stdio, error) {
	s := &stdio{}
	err := s.open(spec)
	if err == nil && user != nil && !s.giveTo(int(user.UID), spec.TTY) { // gVisor's
		s.closeTheirs()
		s.closeOurs()
		s = &stdio{owner: int(user.UID)}
		if err = s.open(spec); err == nil {
			_ = s.giveTo(int(user.UID), spec.TTY) // the terminal
		}
	}
	if err != nil {
		s.closeTheirs()
		s.closeOurs()
		return nil, err
	}
	return s, nil
}

// giveTo makes the user the owner, so that the program may open /dev/stderr or its terminal again; false when pipes cannot
// be given away.
func (s *stdio) giveTo(uid int, tty bool) bool {
	for _, fd := range s.theirs {
		var st syscall.Stat_t
		pipe := syscall.Fstat(fd, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFIFO
		if !pipe && (!tty || fd != s.theirs[0]) {
			continue
		}
		if syscall.Fchown(fd, uid, -1) == syscall.EPERM && pipe && uid != os.Geteuid() && s.owner == 0 {
			return false
		}
	}
	return true
}

// pipe makes one. Its owner is who makes it.
func (s *stdio) pipe() (p [2]int, err error) {
	if s.owner == 0 {
		return p, syscall.Pipe2(p[:], syscall.O_CLOEXEC)
	}
	runtime.LockOSThread()
	_ = setEffective(s.owner) // else the pipe is ours
	err = syscall.Pipe2(p[:], syscall.O_CLOEXEC)
	if setEffective(0) { // else the thread ends with its goroutine
		runtime.UnlockOSThread()
	}
	return p, err
}

func (s *stdio) open(spec execution.Spec) error {
	if spec.TTY {
		master, slave, err := openTTY(spec.Size)
		if err != nil {
			return err
		}
		s.tty, s.out[0], s.theirs = master, master, []int{slave, slave, slave}
		if spec.Stdin {
			s.stdin = master
		}
		if spec.TTYStderr {
			return s.addOut(1)
		}
		return nil
	}
	if err := s.openStdin(spec.Stdin); err != nil {
		return err
	}
	for i := range s.out {
		if err := s.addOut(i); err != nil {
			return err
		}
	}
	return nil
}

func (s *stdio) openStdin(piped bool) error {
	if !piped {
		fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		s.theirs = []int{fd}
		return err
	}
	p, err := s.pipe()
	if err != nil {
		return err
	}
	s.theirs = []int{p[0]}
	_ = syscall.SetNonblock(p[1], true)
	s.stdin = os.NewFile(uintptr(p[1]), "stdin")
	return nil
}

// addOut makes the pipe of stdout (0) or stderr (1). Only our end does not block.
func (s *stdio) addOut(i int) error {
	p, err := s.pipe()
	if err != nil {
		return err
	}
	s.theirs = append(s.theirs[:i+1], p[1])
	_ = syscall.SetNonblock(p[0], true)
	s.out[i] = os.NewFile(uintptr(p[0]), "output")
	return nil
}

func (s *stdio) closeTheirs() {
	last := -1
	for _, fd := range s.theirs {
		if fd >= 0 && fd != last {
			_ = syscall.Close(fd)
		}
		last = fd
	}
	s.theirs = nil
}

func (s *stdio) closeOurs() {
	for _, f := range []*os.File{s.stdin, s.out[0], s.out[1]} {
		if f != nil {
			_ = f.Close()
		}
	}
}
