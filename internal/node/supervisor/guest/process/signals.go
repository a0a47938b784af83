package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// lastSignal is the last of the real-time signals.
const lastSignal = 64

// sigaction is the kernel's struct; the same on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// What the handlers, which are in assembler, use.
var (
	runtimeHandler uintptr        //nolint:unused // set before it is used, and never again
	childEvent     = int32(-1)    //nolint:unused // likewise
	one            = [1]uint64{1} //nolint:unused // a constant
)

// handlers returns the addresses of the handlers, which are in assembler. taken does nothing. fault passes faults that the kernel found
// to the runtime, and ignores those that were sent. child makes the event readable, by a write, which is safe there.
func handlers() (taken, fault, child uintptr)

// TakeSignals keeps what others send from ending us, and returns a file in which the end of a child can be read. Taken,
// not ignored: an ignored signal would stay ignored in the programs that we start. The handlers are our own, because
// package os/signal wakes a thread of its own twice for each signal: it took longer than all else of a start.
func TakeSignals() (children *os.File, err error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("making the event of ended children: %w", err)
	}
	childEvent = int32(fd)
	taken, fault, child := handlers()
	var action sigaction // the runtime's, as a pattern: on its signal stack, with its return
	err = setAction(syscall.SIGSEGV, nil, &action)
	runtimeHandler = action.handler
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGURG, syscall.SIGPROF: // the last two are the runtime's
			continue
		case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP:
			action.handler = fault
		case syscall.SIGCHLD:
			action.handler = child
		default:
			action.handler = taken
		}
		err = errors.Join(err, setAction(n, &action, nil))
	}
	if err == nil {
		spawn.KeepHandlers()
	}
	return os.NewFile(uintptr(fd), "children"), err
}

// setAction is rt_sigaction(2), past the runtime: set may be nil to only read the old action.
func setAction(n syscall.Signal, set, old *sigaction) error {
	_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if e != 0 {
		return fmt.Errorf("taking signal %d: %w", n, e)
	}
	return nil
}
