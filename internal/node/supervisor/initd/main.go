package initd

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"drover/internal/clock"
	"drover/internal/node/supervisor/proto"
)

// The garbage collector's aim: small, because there is one of us a task.
const (
	gcPercent   = 25
	lastSignal  = 31
	exitNoStart = 70
)

// Main is drover-init, in its namespaces: it reads its configuration, and serves until it is told to shut down. It
// returns the process's exit code.
func Main() int {
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(1) // a start passes through few threads then: twice as fast, and less memory
	boot, err := readBoot()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drover-init:", err)
		return exitNoStart
	}
	shield()
	if err := New(boot, clock.Wall{}, proto.LogDirFD).Serve(proto.ListenerFD); err != nil {
		fmt.Fprintln(os.Stderr, "drover-init:", err)
		return exitNoStart
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0) // at once: there is nothing to finish
	return 0
}

func readBoot() (proto.Boot, error) {
	for _, fd := range []int{proto.ListenerFD, proto.ConfigFD, proto.LogDirFD} {
		unix.CloseOnExec(fd)
	}
	f := os.NewFile(proto.ConfigFD, "configuration")
	if f == nil {
		return proto.Boot{}, fmt.Errorf("it is started by the agent only: there is no configuration on descriptor %d", proto.ConfigFD)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, proto.MaxPayload))
	if err != nil {
		return proto.Boot{}, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(b) == 0 {
		return proto.Boot{}, fmt.Errorf("the agent gave up before it sent the configuration")
	}
	return proto.DecodeBoot(b)
}

// shield makes us the parent of all orphans, and keeps what we run from ending or reading us.
func shield() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	var taken []os.Signal
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPROF:
		default:
			taken = append(taken, n)
		}
	}
	// Taken, not ignored: an ignored signal would stay ignored in the programs that we start. Nobody reads the channel.
	signal.Notify(make(chan os.Signal, 1), taken...)
}
