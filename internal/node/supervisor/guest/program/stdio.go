package program

import (
	"os"
	"runtime"
	"syscall"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// Stdio are the two ends of a program's descriptors.
type Stdio struct {
	Stdin *os.File    // nil: /dev/null
	Out   [2]*os.File // stdout and stderr; nil: none
	TTY   *os.File    // the terminal's master, nil without

	theirs []int
	owner  int // of pipes whose owner cannot be changed later; 0: ours
}

// OpenStdio makes the pipes or the terminal that an execution asks for, of which the user is the owner.
func OpenStdio(spec execution.Spec, user *spawn.User) (*Stdio, error) {
	s := &Stdio{}
	err := s.open(spec)
	if err == nil && user != nil && !s.giveTo(int(user.UID), spec.TTY) { // gVisor's
		s.CloseTheirs()
		s.CloseOurs()
		s = &Stdio{owner: int(user.UID)}
		if err = s.open(spec); err == nil {
			_ = s.giveTo(int(user.UID), spec.TTY) // the terminal
		}
	}
	if err != nil {
		s.CloseTheirs()
		s.CloseOurs()
		return nil, err
	}
	return s, nil
}

// giveTo makes the user the owner, so that the program may open /dev/stderr or its terminal again; false when pipes cannot
// be given away.
func (s *Stdio) giveTo(uid int, tty bool) bool {
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
func (s *Stdio) pipe() (p [2]int, err error) {
	if s.owner == 0 {
		return p, syscall.Pipe2(p[:], syscall.O_CLOEXEC)
	}
	runtime.LockOSThread()
	_ = account.SetEffective(s.owner) // else the pipe is ours
	err = syscall.Pipe2(p[:], syscall.O_CLOEXEC)
	if account.SetEffective(0) { // else the thread ends with its goroutine
		runtime.UnlockOSThread()
	}
	return p, err
}

// open makes all descriptors. On an error those that were made are in s, for the caller to close.
func (s *Stdio) open(spec execution.Spec) error {
	if spec.TTY {
		master, slave, err := openTTY(spec.Size)
		if err != nil {
			return err
		}
		s.TTY, s.Out[0], s.theirs = master, master, []int{slave, slave, slave}
		if spec.Stdin {
			s.Stdin = master
		}
		if spec.TTYStderr {
			return s.addOut(1)
		}
		return nil
	}
	if err := s.openStdin(spec.Stdin); err != nil {
		return err
	}
	for i := range s.Out {
		if err := s.addOut(i); err != nil {
			return err
		}
	}
	return nil
}

// openStdin makes the program's stdin: a pipe, or /dev/null, which is at its end at once.
func (s *Stdio) openStdin(piped bool) error {
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
	s.Stdin = os.NewFile(uintptr(p[1]), "stdin")
	return nil
}

// addOut makes the pipe of stdout (0) or stderr (1). Only our end does not block.
func (s *Stdio) addOut(i int) error {
	p, err := s.pipe()
	if err != nil {
		return err
	}
	s.theirs = append(s.theirs[:i+1], p[1])
	_ = syscall.SetNonblock(p[0], true)
	s.Out[i] = os.NewFile(uintptr(p[0]), "output")
	return nil
}

// CloseTheirs closes the program's ends, once it has them.
func (s *Stdio) CloseTheirs() {
	last := -1
	for _, fd := range s.theirs {
		if fd >= 0 && fd != last {
			_ = syscall.Close(fd)
		}
		last = fd
	}
	s.theirs = nil
}

// CloseOurs closes our ends of what was not started.
func (s *Stdio) CloseOurs() {
	for _, f := range []*os.File{s.Stdin, s.Out[0], s.Out[1]} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// NullStdio gives a program /dev/null as stdin, stdout and stderr.
func NullStdio() (*Stdio, error) {
	s := &Stdio{}
	if err := s.openStdin(false); err != nil {
		return nil, err
	}
	fd, err := syscall.Open("/dev/null", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		s.CloseTheirs()
		return nil, err
	}
	s.theirs = append(s.theirs, fd, fd)
	return s, nil
}
