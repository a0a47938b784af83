package spawn

import (
	"syscall"
	"unsafe" // also for go:linkname
)

// The runtime's fork hooks, which it keeps open to packages that fork by themselves (go.dev/issue/67401).

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// handlersKept: see KeepHandlers.
var handlersKept bool

// KeepHandlers says that all signal handlers of the process but those of SIGURG and SIGPROF may run in a child, which shares our memory
// until it executes its program. Then the child need not set them back, which is two thirds of its calls. It must be called before the
// first Start.
func KeepHandlers() { handlersKept = true }

// defaultAction is the kernel's struct sigaction: all zero.
var defaultAction [4]uint64 // a constant

// resetSignals is afterForkInChild where handlers are kept. mask is what beforeFork found.
//
//go:norace
//go:nocheckptr
//go:nosplit
func resetSignals(mask *uint64) {
	action := uintptr(unsafe.Pointer(&defaultAction[0]))
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGURG), action, 0, 8, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGPROF), action, 0, 8, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(mask)), 0, 8, 0, 0)
}

const setMask = 2 // SIG_SETMASK

//go:noescape
func rawVfork(trap, a1, a2 uintptr) (pid, errno uintptr)

//go:noescape
func rawClone(args *cloneArgs, size uintptr, m *machine, entry uintptr) (pid, errno uintptr)
