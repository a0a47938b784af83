package qemu

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/usage"
)

// handle is a virtual machine. Other than a sandbox it takes no executions and no signals, and shows no files: they would be qemu's.
type handle struct {
	driver.Handle
	d       *Driver
	monitor string // path of its socket; "" = it has none
}

var (
	_ driver.Meter   = (*handle)(nil)
	_ driver.Noticer = (*handle)(nil)
	_ driver.Handle  = (*handle)(nil)
)

// sandboxedHandle is what a handle of the sandbox driver has.
type sandboxedHandle interface {
	driver.Handle
	driver.Meter
	driver.Noticer
}

func (d *Driver) handle(h driver.Handle) *handle {
	return &handle{Handle: h, d: d, monitor: sandbox.NoteOf(h.State())}
}

// Attach implements driver.Driver.
func (d *Driver) Attach(ctx context.Context, state driver.State) (driver.Handle, error) {
	h, err := d.cfg.Sandbox.Attach(ctx, state)
	if err != nil {
		return nil, err
	}
	return d.handle(h), nil
}

// Usage implements driver.Meter.
func (h *handle) Usage(ctx context.Context) (*usage.TaskResourceUsage, error) {
	if m, ok := h.Handle.(sandboxedHandle); ok {
		return m.Usage(ctx)
	}
	return nil, driver.ErrNotSupported
}

// OnNotice implements driver.Noticer.
func (h *handle) OnNotice(notice func(text string)) {
	if n, ok := h.Handle.(sandboxedHandle); ok {
		n.OnNotice(notice)
	}
}

// Signal returns driver.ErrNotSupported: on Nomad machines take none either.
func (h *handle) Signal(context.Context, string) error { return driver.ErrNotSupported }

// Stop presses the machine's power button if the task asks for that, and ends qemu by the signal after the timeout. A guest that
// has no ear for the button is ended then.
func (h *handle) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	if h.monitor == "" || h.powerDown(ctx) != nil { // its qemu does not answer: there is nobody to ask
		return h.Handle.Stop(ctx, signal, timeout)
	}
	waiting, cancel := h.d.cfg.Clock.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := h.Wait(waiting); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return h.Handle.Stop(ctx, "SIGKILL", 0)
}

// monitorPatience bounds saying one line to a qemu of the same machine.
const monitorPatience = 5 * time.Second

// powerDown tells qemu's monitor, and waits until it has read that. The socket is opened first. Its path may be longer than the
// kernel takes for a socket, and a link in its place, which a qemu that was taken over could leave, is not followed.
func (h *handle) powerDown(ctx context.Context) error {
	fd, err := unix.Open(h.monitor, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the monitor: %w", err)
	}
	defer unix.Close(fd)
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, monitorPatience)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Write([]byte("system_powerdown\n")); err != nil {
		return err
	}
	var said []byte
	for buf := make([]byte, 512); bytes.Count(said, prompt) < 2 && len(said) < 64<<10; { // one before it, one behind
		n, err := c.Read(buf)
		if said = append(said, buf[:n]...); err != nil {
			break // it is on its way
		}
	}
	return nil
}

// prompt is what the monitor says when it waits for a line.
var prompt = []byte("(qemu)")
