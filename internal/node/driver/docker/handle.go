package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/node/driver"
	"drover/internal/node/supervisor"
)

// handle is a running container.
type handle struct {
	d     *Driver
	box   *box
	ident driver.State

	mu        sync.Mutex
	client    *supervisor.Client // guarded by mu
	stopped   bool               // Stop or Destroy was called; guarded by mu
	destroyed bool               // guarded by mu
	meter     meter              // guarded by mu
}

var (
	_ driver.Handle = (*handle)(nil)
	_ driver.Execer = (*handle)(nil)
	_ driver.Filer  = (*handle)(nil)
	_ driver.Meter  = (*handle)(nil)
)

func newHandle(d *Driver, b *box, client *supervisor.Client, spec *driver.Spec) *handle {
	return &handle{d: d, box: b, client: client, ident: b.state(spec)}
}

func (h *handle) startTask(ctx context.Context, task supervisor.TaskSpec) error {
	group, err := lateGroups{h.d, h.box}.make(mainGroup, noLimits)
	if err != nil {
		return err
	}
	if _, err := h.client.StartTask(ctx, task, group); err != nil {
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
	client, err := supervisor.Connect(ctx, supervisor.SocketPath(h.box.stateDir), h.d.clientOptions(h.box))
	if err != nil {
		return nil, err
	}
	_ = h.client.Close() // it has ended
	h.client = client
	return client, nil
}

func (d *Driver) clientOptions(b *box) supervisor.Options {
	return supervisor.Options{Clock: d.cfg.Clock, Log: d.cfg.Log, Groups: lateGroups{d, b}}
}

// Wait returns when the task ended; for a warm runner, when its container did. It does not ask the daemon.
func (h *handle) Wait(ctx context.Context) (driver.Exit, error) {
	for {
		client, err := h.conn(ctx)
		if errors.Is(err, driver.ErrGone) {
			return h.vanished(ctx), nil
		}
		if err != nil {
			return driver.Exit{}, err
		}
		if h.box.warm {
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

// judge adds what only the machine knows: whether the kernel killed for memory.
func (h *handle) judge(exit driver.Exit) driver.Exit {
	if exit.Signal == int(unix.SIGKILL) && h.box.group != nil && h.box.group.OOMKills() > 0 {
		exit.OOMKilled = true
	}
	return exit
}

const askDaemon = 5 * time.Second

// vanished is the exit of a container whose supervisor is no more: killed by somebody, by a daemon that stopped, or by
// the kernel for memory.
func (h *handle) vanished(ctx context.Context) driver.Exit {
	exit := driver.Exit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL)}
	h.mu.Lock()
	stopped := h.stopped
	h.mu.Unlock()
	if stopped {
		return exit
	}
	exit.Err = errors.New("the container ended without an exit code of the task: its supervisor was killed, or the docker daemon was stopped")
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, askDaemon)
	defer cancel()
	if r, err := h.d.docker.ContainerInspect(ctx, h.box.id, client.ContainerInspectOptions{}); err == nil && r.Container.State != nil {
		exit.OOMKilled = r.Container.State.OOMKilled
	}
	return exit
}

// Signal signals the main task.
func (h *handle) Signal(ctx context.Context, name string) error {
	client, err := h.conn(ctx)
	if err != nil {
		return err
	}
	if h.box.warm {
		return driver.ErrNotSupported
	}
	return client.SignalTask(ctx, name)
}

// Stop asks the main task to end, by the image's stop signal unless one is given, and kills it after the timeout. A warm
// runner has nobody to ask: it ends.
func (h *handle) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	client, err := h.conn(ctx)
	if errors.Is(err, driver.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if h.box.warm {
		if err := client.Shutdown(ctx); err != nil {
			return fmt.Errorf("stopping the runner: %w", err)
		}
		return nil
	}
	if signal == "" && strings.HasPrefix(h.box.stopSignal, "SIG") {
		signal = h.box.stopSignal
	}
	return client.StopTask(ctx, signal, timeout)
}

// Destroy kills everything and frees everything. Idempotent. When the daemon cannot be reached, the container is killed
// all the same, and what the daemon keeps of it is removed by a later Sweep.
func (h *handle) Destroy(ctx context.Context) error {
	h.mu.Lock()
	h.stopped = true
	c := h.client
	h.mu.Unlock()
	err := h.d.free(ctx, h.box)
	if drover.CodeOf(err) == drover.Unavailable && ctx.Err() == nil {
		h.d.cfg.Log.Warn("the docker daemon is away: its container is killed, and removed when it is back", "container", h.box.id, "error", err)
		err = h.abandon()
	}
	if err != nil {
		return fmt.Errorf("destroying the container: %w", err)
	}
	h.mu.Lock()
	h.destroyed = true
	h.mu.Unlock()
	_ = c.Close() // the other end is dead already
	return nil
}

// abandon does what can be done without the daemon.
func (h *handle) abandon() error {
	h.mu.Lock()
	c := h.client
	h.mu.Unlock()
	if err := c.Kill(); err != nil {
		return err
	}
	h.d.forget(h.box.id)
	gone := *h.box
	gone.id = ""
	err := h.d.free(context.Background(), &gone) //nolint:forbidigo // only files
	h.box.image = gone.image
	return err
}

// Network is the address in the container's own network; nil if it has none.
func (h *handle) Network() *drover.AllocNetworkStatus { return h.box.network }

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

// Files gives access to the files that the task sees.
func (h *handle) Files() drover.Files {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client.Files()
}
