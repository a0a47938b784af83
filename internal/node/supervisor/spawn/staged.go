package spawn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Stage is how a staged child starts.
type Stage struct {
	Files []int // become descriptors 0, 1, 2, ...; all others are closed
	// Program becomes the descriptor ProgramFD: a script's last call executes it.
	Program int
	// Namespaces are clone flags, with CLONE_NEWUSER.
	Namespaces uintptr
	// Unshare are those that the child makes itself, while its parent goes on.
	Unshare uintptr
	Cgroup  int // as in Spec
}

// The descriptors that a staged child has beside Files. Neither is open in the program.
const (
	controlFD = 62
	ProgramFD = 63
)

// Staged is a child between fork and exec. It has left the parent's namespaces and waits for its script. It uses the
// parent's memory, on a stack of its own, so a fork costs neither a copy of page tables nor a stop of the parent.
type Staged struct {
	Pid   int
	PidFD *os.File // in the runtime's poller

	control *os.File
	m       atomic.Pointer[machine] // as long as the child may use it
}

const (
	maxReceived = 240 // below the kernel's SCM_MAX_FD
	stageStack  = 8 << 10
)

// machine is the memory that parent and child share. What the child writes is no pointer of Go's.
type machine struct {
	// Set before the fork, or by it.
	args    cloneArgs
	pidfd   int32
	files   []int
	unshare uintptr
	mask    uint64 // of signals: none are blocked
	// Set by the parent before the message that the child waits for.
	script *Script
	// The child's.
	message  unix.Msghdr
	iov      unix.Iovec
	received [1]byte
	oob      [(unix.SizeofCmsghdr + 4*maxReceived + 7) / 8]uint64
	at       int
	errno    syscall.Errno
	setup    bool // it failed before the script
	stack    [stageStack]byte
}

// dumpable is whether others may look at this process, as it was before the first staged child: while one runs its script
// the kernel may say no for all.
var dumpable = sync.OnceValue(func() bool {
	n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err == nil && n == 1
})

// StartStaged forks. The caller calls Run, or kills the child; it reaps the child, and calls Close after that.
func StartStaged(s Stage) (*Staged, error) {
	dumpable()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making the control socket: %w", err)
	}
	defer unix.Close(pair[1])
	m := &machine{unshare: s.Unshare, files: append(append([]int(nil), s.Files...), pair[1], s.Program)}
	m.iov.Base, m.iov.Len = &m.received[0], 1
	m.message.Iov, m.message.Iovlen = &m.iov, 1
	m.message.Control = (*byte)(unsafe.Pointer(&m.oob[0]))
	m.message.SetControllen(len(m.oob) * 8)
	args := &m.args
	*args = cloneArgs{
		flags:      unix.CLONE_VM | unix.CLONE_PIDFD | unix.CLONE_CLEAR_SIGHAND | uint64(s.Namespaces),
		exitSignal: uint64(syscall.SIGCHLD), pidFD: uint64(uintptr(unsafe.Pointer(&m.pidfd))),
		stack: uint64(uintptr(unsafe.Pointer(&m.stack[0])))&^15 + 16, stackSize: stageStack - 16,
	}
	if s.Cgroup > 0 {
		args.flags, args.cgroup = args.flags|cloneIntoCgroup, uint64(s.Cgroup)
	}
	pid, errno := forkStaged(args, m)
	if errno != 0 {
		_ = unix.Close(pair[0])
		return nil, &Error{Step: StepFork, Errno: syscall.Errno(errno)}
	}
	_ = unix.SetNonblock(pair[0], true)
	_ = unix.SetNonblock(int(m.pidfd), true)
	staged := &Staged{Pid: int(pid), PidFD: os.NewFile(uintptr(m.pidfd), "process"), control: os.NewFile(uintptr(pair[0]), "staged")}
	staged.m.Store(m)
	return staged, nil
}

//go:noinline
//go:norace
//go:nocheckptr
func forkStaged(args *cloneArgs, m *machine) (pid, errno uintptr) {
	entry := stagedMain
	beforeFork() // blocks signals, in the child too
	pid, errno = rawClone(args, unsafe.Sizeof(*args), m, **(**uintptr)(unsafe.Pointer(&entry)))
	afterFork()
	return pid, errno
}

// Run gives the child its script, with descriptors, and returns when its program was executed. Errors: *ScriptError,
// *Error, that of a deadline set by Interrupt.
func (s *Staged) Run(script *Script, fds []int) error {
	if len(fds) > maxReceived {
		return fmt.Errorf("%d descriptors are more than can be passed", len(fds))
	}
	m := s.m.Load()
	if m == nil {
		return &Error{Step: StepFork, Errno: syscall.ESRCH} // it has ended
	}
	m.script = script
	if dumpable() { // to change its user makes the memory that it uses secret: ours
		defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }()
	}
	err := s.send(fds)
	if err == nil {
		_, err = s.control.Read(make([]byte, 1))
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("waiting for the script: %w", err)
	}
	switch {
	case m.errno == 0:
		s.m.Store(nil)
		return nil
	case m.setup:
		return &Error{Step: StepFiles, Errno: m.errno}
	default:
		return &ScriptError{What: script.what[m.at], Errno: m.errno}
	}
}

// Interrupt ends a Run that waits.
func (s *Staged) Interrupt() { _ = s.control.SetDeadline(time.Unix(1, 0)) }

// Close lets go of the child's memory; it must have ended, or Run have succeeded.
func (s *Staged) Close() {
	_ = s.control.Close()
	s.m.Store(nil)
}

// send wakes the child by one byte, with descriptors if there are any. A child that has ended is an error, not a signal to us.
func (s *Staged) send(fds []int) error {
	raw, err := s.control.SyscallConn()
	if err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	werr := raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), []byte{1}, oob, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN)
	})
	return errors.Join(err, werr)
}

// stagedMain is where the child begins. It does not return.
//
//go:norace
//go:nocheckptr
//go:nosplit
func stagedMain(m *machine) {
	if m.setup = true; m.prepare() {
		m.setup = false
		m.errno = m.script.run(&m.at)
	}
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 253, 0, 0)
	}
}

// prepare takes the child's descriptors, namespaces and script.
//
//go:norace
//go:nocheckptr
//go:nosplit
func (m *machine) prepare() bool {
	if _, _, m.errno = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0); m.errno != 0 {
		return false
	}
	for i := range m.files { // out of the way first
		fd, _, e := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(m.files[i]), syscall.F_DUPFD_CLOEXEC, firstSafeFD)
		if m.errno = e; e != 0 {
			return false
		}
		m.files[i] = int(fd)
	}
	last := len(m.files) - 2
	for i := range m.files {
		to, flags := uintptr(i), uintptr(0)
		if i >= last {
			to, flags = uintptr(controlFD+i-last), syscall.O_CLOEXEC
		}
		if _, _, m.errno = syscall.RawSyscall(syscall.SYS_DUP3, uintptr(m.files[i]), to, flags); m.errno != 0 {
			return false
		}
	}
	// The parent's end of the control socket is among them, which must close when the parent dies.
	if _, _, m.errno = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(last), controlFD-1, 0); m.errno != 0 {
		return false
	}
	if _, _, m.errno = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, ProgramFD+1, uintptr(^uint32(0)), 0); m.errno != 0 {
		return false
	}
	if m.unshare != 0 {
		if _, _, m.errno = syscall.RawSyscall(syscall.SYS_UNSHARE, m.unshare, 0, 0); m.errno != 0 {
			return false
		}
	}
	n, _, e := syscall.RawSyscall(syscall.SYS_RECVMSG, controlFD, uintptr(unsafe.Pointer(&m.message)), syscall.MSG_CMSG_CLOEXEC)
	if m.errno = e; e != 0 || n == 0 {
		return false // nothing: the parent gave up
	}
	m.unpack()
	// All handlers are the default ones: see CLONE_CLEAR_SIGHAND.
	_, _, m.errno = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&m.mask)), 0, 8, 0, 0)
	return m.errno == 0
}

// unpack puts the received descriptors into the first slots.
//
//go:norace
//go:nocheckptr
//go:nosplit
func (m *machine) unpack() {
	if m.message.Controllen < unix.SizeofCmsghdr {
		return
	}
	oob := (*[len(m.oob) * 2]uint32)(unsafe.Pointer(&m.oob[0]))
	first := unix.SizeofCmsghdr / 4
	count := (int(*(*uint64)(unsafe.Pointer(&m.oob[0]))) - unix.SizeofCmsghdr) / 4
	for i := 0; i < count && i < len(m.script.slots) && first+i < len(oob); i++ {
		m.script.slots[i] = uintptr(oob[first+i])
	}
}
