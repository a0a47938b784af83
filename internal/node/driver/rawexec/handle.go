package rawexec

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"drover"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver"
	"drover/internal/node/driver/grouped"
	"drover/internal/node/supervisor"
)

// handle is a running task.
type handle struct {
	// Constant.
	d         *Driver
	ident     driver.State
	stateDir  string
	groupName string
	warm      bool // no program of its own: a warm runner
	startedAt time.Time
	group     *cgroup.Group // nil without control groups

	mu        sync.Mutex
	client    *supervisor.Client // guarded by mu
	stopped   bool               // Stop or Destroy was called; guarded by mu
	destroyed bool               // guarded by mu
	exit      *driver.Exit       // once it is known; guarded by mu
	meter     grouped.Meter      // guarded by mu
}

var (
	_ driver.Handle = (*handle)(nil)
	_ driver.Execer = (*handle)(nil)
	_ driver.Filer  = (*handle)(nil)
	_ driver.Meter  = (*handle)(nil)
)

func (h *handle) groups() *grouped.Groups {
	return &grouped.Groups{Task: h.group, Clock: h.d.cfg.Clock, Clone: true}
}

func (h *handle) options() supervisor.Options {
	o := supervisor.Options{Clock: h.d.cfg.Clock, Log: h.d.cfg.Log}
	if h.group != nil {
		o.Groups = h.groups()
	}
	return o
}

// State returns what Attach needs.
func (h *handle) State() driver.State { return h.ident }

// Network returns nil: the task is in the host's.
func (h *handle) Network() *drover.AllocNetworkStatus { return nil }

// conn returns the connection, or a new one if it broke while the supervisor lives. Errors: driver.ErrGone.
func (h *handle) conn(ctx context.Context) (*supervisor.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.destroyed || h.client == nil {
		return nil, driver.ErrGone
	}
	select {
	case <-h.client.Done():
	default:
		return h.client, nil
	}
	client, err := supervisor.Connect(ctx, supervisor.SocketPath(h.stateDir), h.options())
	if err != nil {
		return nil, err
	}
	h.client = client
	return client, nil
}

// Wait returns when the task ended; for a warm runner, when its supervisor did.
func (h *handle) Wait(ctx context.Context) (driver.Exit, error) {
	for {
		h.mu.Lock()
		known := h.exit
		h.mu.Unlock()
		if known != nil {
			return *known, nil
		}
		client, err := h.conn(ctx)
		switch {
		case ctx.Err() != nil:
			return driver.Exit{}, context.Cause(ctx)
		case errors.Is(err, driver.ErrGone):
			return h.vanished(), nil
		case err != nil:
			return driver.Exit{}, err
		}
		if err := h.waitOn(ctx, client); err != nil {
			return driver.Exit{}, err
		}
	}
}

// waitOn waits for the exit, which it notes, or for the connection's end.
func (h *handle) waitOn(ctx context.Context, client *supervisor.Client) error {
	if h.warm {
		select {
		case <-client.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	exit, err := client.WaitTask(ctx)
	switch {
	case err == nil:
		exit.OOMKilled = exit.Signal == int(syscall.SIGKILL) && h.group != nil && h.group.OOMKills() > 0
		h.mu.Lock()
		h.exit = &exit
		h.mu.Unlock()
		return nil
	case errors.Is(err, driver.ErrGone):
		return nil
	default:
		return err
	}
}

// vanished is the exit of a task whose supervisor is no more.
func (h *handle) vanished() driver.Exit {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.exit == nil {
		h.exit = &driver.Exit{Code: 128 + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL)}
		if !h.stopped {
			h.exit.Err = errors.New("the task ended without an exit code: its supervisor was killed")
		}
	}
	return *h.exit
}

// Signal signals the task by name. Errors: Invalid, ErrGone.
func (h *handle) Signal(ctx context.Context, name string) error {
	client, err := h.conn(ctx)
	if err != nil {
		return err
	}
	if h.warm {
		return driver.ErrNotSupported
	}
	return client.SignalTask(ctx, name)
}

// Stop asks with the signal ("" = SIGTERM), and kills the tree after the timeout.
func (h *handle) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	client, err := h.conn(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is over already
	}
	if h.warm {
		return client.Shutdown(ctx)
	}
	err = client.StopTask(ctx, signal, timeout)
	if errors.Is(err, driver.ErrGone) {
		return nil
	}
	return err
}

// destroyPatience is how long a supervisor may take to kill everything, before it is killed itself.
const destroyPatience = 10 * time.Second

// Destroy kills what is left and frees everything. Idempotent.
func (h *handle) Destroy(ctx context.Context) error {
	h.mu.Lock()
	h.stopped = true
	client, done := h.client, h.destroyed
	h.mu.Unlock()
	if done {
		return nil
	}
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, destroyPatience)
	defer cancel()
	var errs []error
	if client == nil {
		client, _ = supervisor.Connect(ctx, supervisor.SocketPath(h.stateDir), h.options())
	}
	orderly := false // the supervisor lived, and has killed all that it ran
	if client != nil {
		select {
		case <-client.Done():
		default:
			orderly = true
		}
		err := client.Shutdown(ctx)
		orderly = orderly && err == nil
		errs = append(errs, err)
		_ = client.Close() // it ended
	}
	if h.group != nil {
		errs = append(errs, h.group.Remove(ctx, h.d.cfg.Clock))
	} else if !orderly {
		killMarked(h.ident)
	}
	errs = append(errs, os.RemoveAll(h.stateDir))
	err := errors.Join(errs...)
	h.mu.Lock()
	h.destroyed = err == nil
	h.mu.Unlock()
	return err
}
