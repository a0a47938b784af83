package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
)

// kill ends the sandbox's first process, and with it, by the kernel's word, all processes of its pid namespace; it
// returns when they are gone. A process that only has the same number is left alone.
func (d *Driver) kill(ctx context.Context, b *box) error {
	if b.dead.Load() {
		return nil
	}
	if b.child != nil {
		if err := b.child.End(ctx); err != nil {
			return err
		}
		b.dead.Store(true)
		return nil
	}
	fd, err := unix.PidfdOpen(b.pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil // the number is nobody's, or a thread's by now
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", b.pid, err)
	}
	defer unix.Close(fd)
	// The pidfd is open, so the number cannot go to another process between this look and the signal.
	if ticks := processStart(b.pid); ticks == 0 || ticks != b.startTicks {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing process %d: %w", b.pid, err)
	}
	if err := d.awaitDeath(ctx, fd, b.pid); err != nil {
		return err
	}
	b.dead.Store(true)
	return nil
}

// awaitDeath polls the pidfd, which becomes readable when the process has ended.
func (d *Driver) awaitDeath(ctx context.Context, fd, pid int) error {
	for wait := 20 * time.Millisecond; ; {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(wait.Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for process %d: %w", pid, err)
		}
		if ctx.Err() != nil || (err != nil && !clock.Sleep(ctx, d.cfg.Clock, time.Millisecond)) {
			return fmt.Errorf("process %d does not end: %w", pid, ctx.Err())
		}
	}
}
