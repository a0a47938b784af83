package supervisor

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// Child is a drover-init that this agent has started: as a program, or staged.
type Child struct {
	pid     int
	process *os.Process
	staged  *spawn.Staged
	gone    chan struct{} // closed when it was collected
	status  string        // how it ended, as "signal: killed"; set when gone is closed
	ending  atomic.Bool   // End was called
}

// reap collects a drover-init when it has ended. It waits in the runtime's poller where the kernel can do that (5.10):
// os.Process.Wait alone would hold a thread for each task.
func (c *Child) reap() {
	defer close(c.gone)
	if c.staged != nil {
		await(c.staged.PidFD)
		var status unix.WaitStatus
		_, _ = unix.Wait4(c.pid, &status, 0, nil)
		c.status = told(status)
		c.staged.Close()
		return
	}
	if fd, err := unix.PidfdOpen(c.pid, unix.PIDFD_NONBLOCK); err == nil {
		await(os.NewFile(uintptr(fd), "process"))
	}
	if state, err := c.process.Wait(); err == nil {
		c.status = state.String()
	}
}

// told says how a process ended, as os.ProcessState does.
func told(status unix.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// dyingIn is how long a process may take from closing what it has open to where it can be collected.
const dyingIn = time.Second

// fate says how a drover-init ended that ended by itself; "" if it lives on, or if ctx ends first.
func (c *Child) fate(ctx context.Context, clk clock.Clock) string {
	ctx, cancel := clk.WithTimeout(ctx, dyingIn)
	defer cancel()
	select {
	case <-c.gone:
		return " (" + c.status + ")"
	case <-ctx.Done():
		return ""
	}
}

// kill kills it, if it was not collected yet.
func (c *Child) kill() {
	if c.staged == nil {
		_ = c.process.Kill()
		return
	}
	if raw, err := c.staged.PidFD.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
}

// End kills drover-init, and with it, if it is PID 1 of a namespace, all that it ran, and returns when it was collected.
// Errors: ctx's.
func (c *Child) End(ctx context.Context) error {
	c.ending.Store(true)
	c.kill()
	select {
	case <-c.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("process %d does not end: %w", c.pid, context.Cause(ctx))
	}
}

// Ended returns when drover-init was collected, if End was called; else it reports false at once. Errors: ctx's.
func (c *Child) Ended(ctx context.Context) (bool, error) {
	if !c.ending.Load() {
		return false, nil
	}
	select {
	case <-c.gone:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// await returns when the descriptor's process has ended, or cannot be waited for, and closes it.
func await(pidfd *os.File) {
	if raw, err := pidfd.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool { return ended(int(fd)) })
	}
	_ = pidfd.Close()
}

// ended reports whether the descriptor's process is a zombie, or gone.
func ended(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return n > 0 || err != nil && err != unix.EINTR // a bare errno
}
