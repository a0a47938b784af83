package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// StartTask starts the main task, in the group if one is given. It returns the process id in the guest. Errors:
// Invalid with the reason when the program cannot be started, Conflict when there is one already.
func (c *Client) StartTask(ctx context.Context, spec TaskSpec, group Group) (pid int, err error) {
	files, clone := groupFiles(group)
	req := wire.Task{Argv: spec.Argv, Env: spec.Env, WorkDir: spec.WorkDir, User: spec.User, Rlimits: spec.Rlimits, Clone: clone}
	req.TTY, req.Input = spec.TTY, spec.Input
	p, err := c.ask(ctx, wire.OpTaskStart, req.Encode(), files...)
	if err != nil {
		return 0, err
	}
	d := wire.Decoder{B: p}
	return int(d.Int()), d.Err
}

// WaitTask returns how the main task ended. Meanwhile notice, if not nil, is told what a person should know: that output
// is lost because the disk is full. Errors: driver.ErrGone when the supervisor ended, Conflict when no task was
// started.
func (c *Client) WaitTask(ctx context.Context, notice func(text string)) (driver.Exit, error) {
	var flag []byte
	if notice != nil {
		flag = []byte{1}
	}
	k, err := c.open(wire.OpTaskWait, flag)
	if err != nil {
		return driver.Exit{}, err
	}
	defer k.forget()
	p, err := k.answer(ctx, notice)
	if err != nil {
		return driver.Exit{}, err
	}
	d := wire.Decoder{B: p}
	r := d.Receipt()
	code := r.ExitCode
	if r.Signal != 0 {
		code = 128 + r.Signal
	}
	return driver.Exit{Code: code, Signal: r.Signal, Receipt: &r}, d.Err
}

// TaskStarted reports whether the main task was started; it may have ended since. Errors: Gone.
func (c *Client) TaskStarted(ctx context.Context) (bool, error) {
	p, err := c.ask(ctx, wire.OpTaskState, nil)
	if err != nil {
		return false, err
	}
	d := wire.Decoder{B: p}
	return d.Bool(), d.Err
}

// SignalTask signals the main task's process group by name ("SIGHUP", "HUP"). Errors: Invalid, Gone, Conflict.
func (c *Client) SignalTask(ctx context.Context, name string) error {
	var e wire.Encoder
	e.Str(name)
	_, err := c.ask(ctx, wire.OpTaskSignal, e.B)
	return err
}

// StopTask signals the main task ("" = SIGTERM), kills its whole tree after the timeout, and returns when it is over.
func (c *Client) StopTask(ctx context.Context, signal string, timeout time.Duration) error {
	var e wire.Encoder
	e.Str(signal)
	e.Int(int64(timeout))
	_, err := c.ask(ctx, wire.OpTaskStop, e.B)
	return err
}

// Shutdown kills everything that the supervisor runs, and ends it. It returns when it has ended; idempotent. When ctx
// ends first, the supervisor is killed hard, if its process is known.
func (c *Client) Shutdown(ctx context.Context) error {
	_, err := c.ask(ctx, wire.OpShutdown, nil)
	if err != nil && !errors.Is(err, driver.ErrGone) {
		return errors.Join(err, c.process.end(ctx, c.opts.Clock))
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	if c.process.wait(ctx) != nil {
		return c.process.end(ctx, c.opts.Clock)
	}
	return nil
}

// Clean shuts a supervisor down that nobody knows any more, if it lives, and removes its folder: for what an agent
// that was killed had started and not yet noted.
func Clean(ctx context.Context, stateDir string, opts Options) error {
	c, err := Connect(ctx, SocketPath(stateDir), opts)
	switch {
	case err == nil:
		err = c.Shutdown(ctx)
		_ = c.Close() // it is gone
	case errors.Is(err, driver.ErrGone):
		err = Bury(ctx, stateDir, opts.Clock)
	}
	if err != nil {
		return fmt.Errorf("cleaning up %s: %w", stateDir, err)
	}
	return Discard(stateDir)
}
