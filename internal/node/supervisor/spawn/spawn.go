package spawn

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Spec is a program to start.
type Spec struct {
	Path  string   // of the program, resolved from Dir when relative
	Argv  []string //
	Env   []string // KEY=value
	Dir   string   // working directory, "" = the caller's
	Files []int    // become descriptors 0, 1, 2, ...; everything else must be close-on-exec
	TTY   bool     // Files[0] becomes the controlling terminal
	User  *User    // nil = the caller's
	// Rlimits are set before the user is changed.
	Rlimits []Rlimit
	// Join are open cgroup.procs files, into which the child writes itself.
	Join []int
	// Cgroup is a v2 group's folder to be born in; -1 or 0 = none.
	Cgroup int
	// Drop are capabilities that the program and all that it starts can never have, by number, as bits. The caller needs
	// CAP_SETPCAP.
	Drop uint64
	// Ambient are capabilities that a program of another user than root has all the same, and hands on, by number, as bits. The caller
	// has them.
	Ambient uint64
	// CgroupNamespace makes the program's control group the root of what it sees of the tree. The caller needs CAP_SYS_ADMIN.
	CgroupNamespace bool
	// ResetOOM sets oom_score_adj back to 0: the supervisor's own is low.
	ResetOOM bool
}

// User is whom a program runs as.
type User struct {
	UID, GID uint32
	Groups   []uint32
	// KeepGroups leaves the supplementary groups alone, where setgroups is not allowed.
	KeepGroups bool
}

// Rlimit is one resource limit.
type Rlimit struct {
	Resource int
	Cur, Max uint64
}

// Step is where a start failed.
type Step int

// The steps, in the order in which the child takes them.
const (
	StepFork Step = iota
	StepJoin
	StepSession
	StepTerminal
	StepFiles
	StepRlimit
	StepUser
	StepDir
	StepExec
)

var stepNames = [...]string{
	"forking", "joining the control group", "starting the session", "setting the terminal", "passing descriptors",
	"setting resource limits", "changing the user", "changing to the working directory", "executing the program",
}

// Error is a failed start.
type Error struct {
	Step  Step
	Errno syscall.Errno
}

// Error says which step failed and why.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", stepNames[e.Step], e.Errno) }

// Unwrap returns the errno.
func (e *Error) Unwrap() error { return e.Errno }

// plan is a Spec in the form that the child can use without the runtime: no allocation, no stack growth.
type plan struct {
	path     *byte
	argv     []*byte
	env      []*byte
	dir      *byte
	files    []int
	tty      bool
	user     bool
	setgids  bool
	uid, gid uintptr
	gids     []uint32
	rlimits  []Rlimit
	join     []int
	cgroupNS bool
	trap     uintptr
	arg1     uintptr
	arg2     uintptr
	oomPath  *byte
	drop     uint64
	ambient  uint64
	capHead  [2]uint32 // struct __user_cap_header_struct: the version, and this process
	capSets  [6]uint32 // effective, permitted and inheritable, twice: the lower capabilities and the upper
	mask     uint64    // of blocked signals
	step     Step      // written by the child
	errno    syscall.Errno
}

// cloneArgs is struct clone_args up to the cgroup field.
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

const (
	cloneIntoCgroup = 0x200000000
	cloneNewCgroup  = 0x2000000
	sysClone3       = 435
	lastCapability  = 63
	prCapbsetDrop   = 24
	prAmbient       = 47
	prAmbientRaise  = 2
	capVersion3     = 0x20080522
	firstSafeFD     = 100 // scratch descriptors start above what Files may need
)

// Start starts the program in a new session. The caller reaps it. Errors: *Error.
func Start(s Spec) (pid int, err error) {
	p, err := newPlan(s)
	if err != nil {
		return 0, err
	}
	var args cloneArgs
	p.trap, p.arg1 = syscall.SYS_CLONE, uintptr(syscall.SIGCHLD)|syscall.CLONE_VFORK|syscall.CLONE_VM
	if s.Cgroup > 0 {
		args = cloneArgs{
			flags: syscall.CLONE_VFORK | syscall.CLONE_VM | cloneIntoCgroup, exitSignal: uint64(syscall.SIGCHLD), cgroup: uint64(s.Cgroup),
		}
		p.trap, p.arg1, p.arg2 = sysClone3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args)
	}
	syscall.ForkLock.Lock()
	id, errno := forkExec(p)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, &Error{Step: StepFork, Errno: syscall.Errno(errno)}
	}
	if p.errno != 0 {
		_, _ = syscall.Wait4(int(id), nil, 0, nil) // it is ended; ECHILD when the caller's reaper was faster
		return 0, &Error{Step: p.step, Errno: p.errno}
	}
	return int(id), nil
}

// newPlan makes everything that the child needs before the fork: between fork and exec it may not allocate. Errors: *Error for a string
// with a zero byte.
func newPlan(s Spec) (*plan, error) {
	p := &plan{files: append([]int(nil), s.Files...), tty: s.TTY, rlimits: s.Rlimits, join: s.Join, cgroupNS: s.CgroupNamespace, drop: s.Drop}
	var err error
	if p.path, err = syscall.BytePtrFromString(s.Path); err != nil {
		return nil, &Error{Step: StepExec, Errno: syscall.EINVAL}
	}
	if p.argv, err = syscall.SlicePtrFromStrings(s.Argv); err != nil {
		return nil, &Error{Step: StepExec, Errno: syscall.EINVAL}
	}
	if p.env, err = syscall.SlicePtrFromStrings(s.Env); err != nil {
		return nil, &Error{Step: StepExec, Errno: syscall.EINVAL}
	}
	if s.Dir != "" {
		if p.dir, err = syscall.BytePtrFromString(s.Dir); err != nil {
			return nil, &Error{Step: StepDir, Errno: syscall.EINVAL}
		}
	}
	if s.ResetOOM {
		p.oomPath, _ = syscall.BytePtrFromString("/proc/self/oom_score_adj")
	}
	if u := s.User; u != nil {
		if u.UID != 0 {
			p.ambient = s.Ambient &^ s.Drop
		}
		p.capHead = [2]uint32{capVersion3, 0}
		low, high := uint32(p.ambient), uint32(p.ambient>>32) // the halves
		p.capSets = [6]uint32{low, low, low, high, high, high}
		p.user, p.setgids, p.uid, p.gid, p.gids = true, !u.KeepGroups, uintptr(u.UID), uintptr(u.GID), u.Groups
	}
	return p, nil
}
