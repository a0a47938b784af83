package server

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/stack"
	"github.com/drover-project/drover/internal/sysmon"
)

// The garbage collector's aim: small, because there is one of us a task.
const (
	gcPercent   = 25
	exitNoStart = 70
)

// Main is drover-init, in its namespaces: it reads its configuration, and serves until it is told to shut down. It
// returns the process's exit code.
func Main() int {
	stack.Grow8K()
	tune()
	boot, err := readBoot()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drover-init:", err)
		return exitNoStart
	}
	children, err := shield()
	if err == nil {
		err = New(boot, clock.Wall{}, wire.LogDirFD).Serve(wire.ListenerFD, children)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drover-init:", err)
		return exitNoStart
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0) // at once: there is nothing to finish
	return 0
}

// tune makes the runtime small. Where the agent sets our environment it is that already.
func tune() {
	runtime.MemProfileRate = 0
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	runtime.GOMAXPROCS(1) // a start passes through few threads then: twice as fast, and less memory
	sysmon.Relax()
}

// readBoot reads the task's configuration to the end of its descriptor, and closes it. No program that is started inherits the agent's
// descriptors.
func readBoot() (wire.Boot, error) {
	for _, fd := range []int{wire.ListenerFD, wire.ConfigFD, wire.LogDirFD} {
		unix.CloseOnExec(fd)
	}
	f := os.NewFile(wire.ConfigFD, "configuration")
	if f == nil {
		return wire.Boot{}, fmt.Errorf("it is started by the agent only: there is no configuration on descriptor %d", wire.ConfigFD)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, wire.MaxPayload))
	if err != nil {
		return wire.Boot{}, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(b) == 0 {
		return wire.Boot{}, fmt.Errorf("the agent gave up before it sent the configuration")
	}
	return wire.DecodeBoot(b)
}

// shield makes us the parent of all orphans, and keeps what we run from ending or reading us. It returns what tells of
// ended children.
func shield() (children *os.File, err error) {
	// Orphans come to us instead of the machine's init, also without a pid namespace of our own.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	// Not being dumpable closes /proc/<pid>/mem, environ and fd to other processes of the same user (prctl(2)).
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	return process.TakeSignals()
}
