package spawn

import (
	"syscall"
	"unsafe"
)

const (
	prlimitSelf = 0
	timerSlack  = 50_000 // ns, the kernel's default: what the supervisor has is for its own threads
)

var joinSelf = [1]byte{'0'} // constant bytes: the child may not allocate

// forkExec forks, and in the child does the plan. The child shares memory and stack with the parent, which stands
// still until the child execs or ends: between the fork and then only raw system calls are allowed.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkExec(p *plan) (pid, errno uintptr) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, 0, uintptr(unsafe.Pointer(&p.mask)), 8, 0, 0)
	beforeFork()
	pid, errno = rawVfork(p.trap, p.arg1, p.arg2)
	if errno != 0 || pid != 0 {
		afterFork()
		return pid, errno
	}
	if handlersKept {
		resetSignals(&p.mask)
	} else {
		afterForkInChild()
	}
	runChild(p)
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 253, 0, 0)
	}
}

// runChild returns only on failure, with step and errno set.
//
//go:noinline
//go:norace
//go:nocheckptr
//go:nosplit
func runChild(p *plan) {
	var e syscall.Errno

	p.step = StepJoin
	for _, fd := range p.join {
		if _, _, e = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&joinSelf[0])), 1); e != 0 {
			p.errno = e
			return
		}
	}
	if p.cgroupNS {
		if _, _, e = syscall.RawSyscall(syscall.SYS_UNSHARE, cloneNewCgroup, 0, 0); e != 0 {
			p.errno = e
			return
		}
	}
	if p.oomPath != nil { // best effort
		const flags = syscall.O_WRONLY | syscall.O_CLOEXEC
		if fd, _, e := syscall.RawSyscall6(syscall.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(p.oomPath)), flags, 0, 0, 0); e == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&joinSelf[0])), 1)
		}
	}

	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, timerSlack, 0)

	p.step = StepSession
	if _, _, e = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0); e != 0 {
		p.errno = e
		return
	}

	p.step = StepTerminal
	if p.tty {
		if _, _, e = syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(p.files[0]), syscall.TIOCSCTTY, 1); e != 0 {
			p.errno = e
			return
		}
	}

	p.step = StepFiles
	if p.errno = passFiles(p); p.errno != 0 {
		return
	}

	p.step = StepRlimit
	for i := range p.rlimits {
		r := &p.rlimits[i]
		_, _, e = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, prlimitSelf, uintptr(r.Resource), uintptr(unsafe.Pointer(&r.Cur)), 0, 0, 0)
		if e != 0 {
			p.errno = e
			return
		}
	}

	p.step = StepUser
	if p.errno = dropCapabilities(p); p.errno != 0 {
		return
	}
	if p.errno = changeUser(p); p.errno != 0 {
		return
	}

	p.step = StepDir // as the user: it has to be able to enter it
	if p.dir != nil {
		if _, _, e = syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(unsafe.Pointer(p.dir)), 0, 0); e != 0 {
			p.errno = e
			return
		}
	}

	p.step = StepExec
	_, _, p.errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(p.path)),
		uintptr(unsafe.Pointer(&p.argv[0])), uintptr(unsafe.Pointer(&p.env[0])))
}

// passFiles makes p.files descriptors 0, 1, 2, ...: first out of the way, then into place.
//
//go:norace
//go:nocheckptr
//go:nosplit
func passFiles(p *plan) syscall.Errno {
	for i := range p.files {
		fd, _, e := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(p.files[i]), syscall.F_DUPFD_CLOEXEC, firstSafeFD)
		if e != 0 {
			return e
		}
		p.files[i] = int(fd)
	}
	for i := range p.files {
		if _, _, e := syscall.RawSyscall(syscall.SYS_DUP3, uintptr(p.files[i]), uintptr(i), 0); e != 0 {
			return e
		}
	}
	return 0
}

//go:norace
//go:nocheckptr
//go:nosplit
func dropCapabilities(p *plan) syscall.Errno {
	for c := uintptr(0); c <= lastCapability && p.drop != 0; c++ {
		if p.drop>>c&1 == 0 {
			continue
		}
		if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, prCapbsetDrop, c, 0); e != 0 {
			return e
		}
	}
	return 0
}

//go:norace
//go:nocheckptr
//go:nosplit
func changeUser(p *plan) syscall.Errno {
	if !p.user {
		return 0
	}
	if p.setgids {
		var list uintptr
		if len(p.gids) > 0 {
			list = uintptr(unsafe.Pointer(&p.gids[0]))
		}
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(p.gids)), list, 0); e != 0 {
			return e
		}
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESGID, p.gid, p.gid, p.gid); e != 0 {
		return e
	}
	if p.ambient != 0 {
		if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_KEEPCAPS, 1, 0); e != 0 {
			return e
		}
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, p.uid, p.uid, p.uid); e != 0 {
		return e
	}
	return raiseAmbient(p)
}

// raiseAmbient keeps of the capabilities those that the program is to have, and makes them outlive the exec.
//
//go:norace
//go:nocheckptr
//go:nosplit
func raiseAmbient(p *plan) syscall.Errno {
	if p.ambient == 0 {
		return 0
	}
	head, sets := uintptr(unsafe.Pointer(&p.capHead[0])), uintptr(unsafe.Pointer(&p.capSets[0]))
	if _, _, e := syscall.RawSyscall(syscall.SYS_CAPSET, head, sets, 0); e != 0 {
		return e
	}
	for c := uintptr(0); c <= lastCapability; c++ {
		if p.ambient>>c&1 == 0 {
			continue
		}
		if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prAmbient, prAmbientRaise, c, 0, 0, 0); e != 0 {
			return e
		}
	}
	return 0
}
