package evaluator

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// seal gives up all that a computation does not need.
func seal(l Limits) error {
	// Best effort: where this cannot be written the kernel only chooses less well.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	data, space, err := sizes()
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(l.Memory - l.Memory/8) // collect garbage before the kernel refuses
	debug.SetMaxStack(int(min(l.Memory/4, 64<<20)))
	for _, r := range []struct {
		what     string
		resource int
		most     uint64
	}{
		{"the memory", unix.RLIMIT_DATA, data + scale*uint64(l.Memory)},                 // positive
		{"the addresses", unix.RLIMIT_AS, space + scale*uint64(l.Memory) + arenaMargin}, // positive
		{"the size of files", unix.RLIMIT_FSIZE, 0},
		{"core dumps", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, 16},
	} {
		if err := lower(r.resource, r.most, r.most); err != nil {
			return fmt.Errorf("limiting %s: %w", r.what, err)
		}
	}
	if err := dieOfTime(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // nobody reads its memory, which holds tasks' environments
		return fmt.Errorf("closing the memory to others: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	return filterCalls()
}

// lower sets a limit, of which the agent's own may be lower still.
func lower(resource int, soft, hard uint64) error {
	var own unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &own); err != nil {
		return err
	}
	hard = min(hard, own.Max)
	return unix.Prlimit(0, resource, &unix.Rlimit{Cur: min(soft, hard), Max: hard}, nil)
}

// dieOfTime has the kernel end the process at the limit of its processor time, which Go's runtime would not heed.
func dieOfTime() error {
	var byDefault [4]uint64 // struct sigaction
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGXCPU), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	if errno != 0 {
		return fmt.Errorf("setting what SIGXCPU does: %w", errno)
	}
	return nil
}

const (
	// niceness lets the agent go first when there is more to do than processors, but not so that evaluating starves.
	niceness = 5
	// arenaMargin is for the addresses that Go's runtime takes ahead, 64 MB at a time, before it uses them.
	arenaMargin = 192 << 20
)

// sizes returns how much memory, as the kernel counts it for RLIMIT_DATA, and how many addresses the process has already.
func sizes() (data, space uint64, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, fmt.Errorf("reading the process's size: %w", err)
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 3 {
			continue
		}
		switch n, _ := strconv.ParseUint(string(fields[1]), 10, 64); string(fields[0]) {
		case "VmData:":
			data = n << 10
		case "VmSize:":
			space = n << 10
		}
	}
	if data == 0 || space == 0 {
		return 0, 0, errors.New("the process's size is not in /proc/self/status")
	}
	return data, space, nil
}

// needed are the system calls of Go's runtime while it computes, and of reading and answering.
var needed = []uint32{ // a constant list
	// Memory, and the pipes to the agent.
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE,
	unix.SYS_MINCORE, unix.SYS_BRK,
	// Threads and signals.
	unix.SYS_FUTEX, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_GETPID,
	unix.SYS_GETTID, unix.SYS_TGKILL, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	// Time and waiting.
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_RESTART_SYSCALL, unix.SYS_TIMER_CREATE,
	unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	// Limits, randomness and the end.
	unix.SYS_GETRANDOM, unix.SYS_GETRUSAGE, unix.SYS_PRLIMIT64, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// Offsets in struct seccomp_data.
const (
	numberAt   = 0
	archAt     = 4
	firstArgAt = 16
)

// filterCalls refuses all system calls but the needed ones, for all threads. A clone may only make a thread; that clone3
// is not there is what makes C libraries take clone.
func filterCalls() error {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		refuse,
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
	}
	for _, number := range needed {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, allow)
	}
	program = append(
		program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 3},
		bpf.LoadAbsolute{Off: firstArgAt, Size: 4}, // both architectures are little-endian: the low half
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.CLONE_THREAD, SkipTrue: 1},
		allow,
		refuse,
	)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return fmt.Errorf("assembling the filter of system calls: %w", err)
	}
	head := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))} // both are struct sock_filter
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&head)))
	runtime.KeepAlive(raw)
	if errno != 0 {
		return fmt.Errorf("filtering system calls: %w", errno)
	}
	return nil
}
