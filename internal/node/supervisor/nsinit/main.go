package nsinit

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstOwn is the first descriptor that is not the supervisor's (listener 3, configuration 4, logs 5).
const firstOwn = 6

// Main sets the sandbox up and executes the supervisor with the arguments after the control descriptor. It returns
// only when that failed; the reason went over the control socket.
func Main(args []string) int {
	runtime.LockOSThread() // what follows are properties of this thread, which the execution keeps
	if len(args) < 1 {
		fmt.Fprintln(os.Stderr, "drover-init sandbox: started by the agent only")
		return 2
	}
	control, err := strconv.Atoi(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "drover-init sandbox: started by the agent only")
		return 2
	}
	if err := unix.CloseRange(firstOwn, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(control)
	}
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if err := run(control, rest); err != nil {
		_, _ = unix.Write(control, []byte(err.Error()))
	}
	return 1
}

func run(control int, args []string) error {
	self, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the supervisor: %w", err)
	}
	c, fds, err := receive(control)
	if err != nil {
		return err
	}
	if err := becomeRoot(); err != nil {
		return err
	}
	if c.Lowers == nil {
		return errors.New("the sandbox has no root")
	}
	if err := setup(c, fds); err != nil {
		return err
	}
	if err := seal(c); err != nil {
		return err
	}
	return execute(self, append([]string{"drover-init"}, args...))
}
