package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver"
	"drover/internal/node/driver/grouped"
	"drover/internal/node/supervisor"
)

// handle is a running sandbox.
type handle struct {
	d     *Driver
	box   *box
	warm  bool // no main task: only the supervisor runs
	ident driver.State
	// network is constant; nil unless it is on the bridge.
	network *drover.AllocNetworkStatus

	mu        sync.Mutex
	client    *supervisor.Client
	stopped   bool // Stop or Destroy was called
	destroyed bool
	meter     grouped.Meter
}

var (
	_ driver.Handle = (*handle)(nil)
	_ driver.Execer = (*handle)(nil)
	_ driver.Filer  = (*handle)(nil)
	_ driver.Meter  = (*handle)(nil)
)

func newHandle(d *Driver, b *box, client *supervisor.Client, spec *driver.Spec, warm bool) *handle {
	h := &handle{d: d, box: b, warm: warm, client: client}
	h.meter, h.network = d.newMeter(b), b.net.status()
	h.ident = b.state(spec.ID, spec.AllocID, spec.TaskName, warm)
	return h
}

func (h *handle) startTask(ctx context.Context, task supervisor.TaskSpec) error {
	var group supervisor.Group
	if g := h.box.groups(h.d); g != nil {
		made, err := g.Make(grouped.Main, cgroup.Limits{})
		if err != nil {
			return err
		}
		defer made.Close() // the supervisor has its own by then
		group = made
	}
	_, err := h.client.StartTask(ctx, task, group)
	if err != nil {
		return drover.Errorf(drover.CodeOf(err), "starting %q: %w", task.Argv[0], err)
	}
	return nil
}

// State returns what Attach needs.
func (h *handle) State() driver.State { return h.ident }

// conn returns the connection, or a new one if it broke while the supervisor lives. Errors: driver.ErrGone.
func (h *handle) conn(ctx context.Context) (*supervisor.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.destroyed {
		return nil, driver.ErrGone
	}
	select {
	case <-h.client.Done():
	default:
		return h.client, nil
	}
	client, err := supervisor.Connect(ctx, supervisor.SocketPath(h.box.stateDir), h.box.options(h.d))
	if err != nil {
		return nil, err
	}
	_ = h.client.Close()
	h.client = client
	return client, nil
}

// Wait returns when the task ended; for a warm runner, when its supervisor did.
func (h *handle) Wait(ctx context.Context) (driver.Exit, error) {
	for {
		client, err := h.conn(ctx)
		if errors.Is(err, driver.ErrGone) {
			return h.vanished(), nil
		}
		if err != nil {
			return driver.Exit{}, err
		}
		if h.warm {
			select {
			case <-ctx.Done():
				return driver.Exit{}, ctx.Err()
			case <-client.Done():
				continue
			}
		}
		exit, err := client.WaitTask(ctx)
		if err == nil {
			return h.judge(exit), nil
		}
		if ctx.Err() != nil {
			return driver.Exit{}, ctx.Err()
		}
		if !errors.Is(err, driver.ErrGone) {
			select {
			case <-client.Done():
				continue
			default:
				return driver.Exit{}, fmt.Errorf("waiting for the task: %w", err)
			}
		}
		select { // the connection's end is told to calls a moment before Done
		case <-client.Done():
		case <-ctx.Done():
			return driver.Exit{}, ctx.Err()
		}
	}
}

// judge adds what only the host knows: whether the kernel killed for memory.
func (h *handle) judge(exit driver.Exit) driver.Exit {
	if exit.Signal == int(unix.SIGKILL) && h.oomKills() > 0 {
		exit.OOMKilled = true
	}
	return exit
}

// vanished is the exit of a sandbox whose supervisor is no more.
func (h *handle) vanished() driver.Exit {
	h.mu.Lock()
	defer h.mu.Unlock()
	exit := driver.Exit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL)}
	if !h.stopped {
		exit.Err = errors.New("the sandbox ended without an exit code: its supervisor was killed")
	}
	return exit
}

func (h *handle) oomKills() uint64 {
	if h.box.group == nil {
		return 0
	}
	return h.box.group.OOMKills()
}

// Signal signals the main task.
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

// Stop asks the main task to end, and kills it after the timeout. A warm runner has nobody to ask: it ends.
func (h *handle) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	if h.warm {
		return h.d.kill(ctx, h.box)
	}
	client, err := h.conn(ctx)
	if errors.Is(err, driver.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	return client.StopTask(ctx, signal, timeout)
}

// Destroy kills everything and frees everything. Idempotent.
func (h *handle) Destroy(ctx context.Context) error {
	h.mu.Lock()
	h.stopped = true
	client := h.client
	h.mu.Unlock()
	if err := h.d.free(ctx, h.box); err != nil {
		return fmt.Errorf("destroying the sandbox: %w", err)
	}
	h.mu.Lock()
	h.destroyed = true
	h.mu.Unlock()
	if client != nil {
		_ = client.Close() // the other end is dead already
	}
	return nil
}

// Network is the sandbox's address on the bridge; nil when there is loopback only, or the host's.
func (h *handle) Network() *drover.AllocNetworkStatus { return h.network }

// StartExecution runs a command.
func (h *handle) StartExecution(ctx context.Context, spec drover.ExecutionSpec) (drover.Session, error) {
	client, err := h.conn(ctx)
	if err != nil {
		return nil, err
	}
	return client.StartExecution(ctx, spec)
}

// AttachExecution opens another session on a command.
func (h *handle) AttachExecution(ctx context.Context, id string, from drover.Offsets) (drover.Session, error) {
	client, err := h.conn(ctx)
	if err != nil {
		return nil, err
	}
	return client.AttachExecution(ctx, id, from)
}

// Executions lists commands.
func (h *handle) Executions(ctx context.Context) ([]drover.Execution, error) {
	client, err := h.conn(ctx)
	if err != nil {
		return nil, err
	}
	return client.Executions(ctx)
}

// Files gives access to the files that the guest sees.
func (h *handle) Files() drover.Files {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client.Files()
}
