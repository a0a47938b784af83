package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/network"
)

// handle is a running container.
type handle struct {
	*supervised.Task
	d     *Driver
	box   *box
	ident driver.State
	disk  disk

	mu    sync.Mutex
	meter grouped.Meter // guarded by mu
}

var (
	_ driver.Handle = (*handle)(nil)
	_ driver.Execer = (*handle)(nil)
	_ driver.Filer  = (*handle)(nil)
	_ driver.Meter  = (*handle)(nil)
)

// newHandle makes the handle of a container whose drover-init was reached. The client is the task's to close from now on.
func newHandle(d *Driver, b *box, client *supervisor.Client, ident driver.State) *handle {
	task := supervised.New(supervised.Config{
		Connect: func(ctx context.Context) (*supervisor.Client, error) { return d.connect(ctx, b) }, Warm: b.warm, OOMKills: b.oomKills,
	}, client)
	return &handle{Task: task, d: d, box: b, ident: ident, meter: grouped.Meter{Started: b.startedAt, CoreMHz: int64(d.cfg.CoreMHz)}}
}

// connect connects to the container's supervisor. Errors: driver.ErrGone.
func (d *Driver) connect(ctx context.Context, b *box) (*supervisor.Client, error) {
	if b.attached {
		return d.reattach(ctx, b)
	}
	return supervisor.Connect(ctx, supervisor.SocketPath(b.stateDir), d.clientOptions(b))
}

// oomKills is how often the kernel killed something in the container for its memory. It is 0 where that cannot be read.
func (b *box) oomKills() uint64 {
	if b.usage == nil {
		return 0
	}
	return b.usage.OOMKills()
}

// clientOptions are those of every connection to the container's drover-init, so that a later one makes groups as the first did.
func (d *Driver) clientOptions(b *box) supervisor.Options {
	return supervisor.Options{Clock: d.cfg.Clock, Log: d.cfg.Log, Groups: b.groups}
}

// State returns what Attach needs.
func (h *handle) State() driver.State { return h.ident }

const (
	// askDaemon bounds a request on which nothing depends but the one who waits for it.
	askDaemon = 5 * time.Second
	// retryDaemon is how often a daemon that is away is looked for, where we need it.
	retryDaemon = time.Second
)

// Wait returns when the task ended; for a warm runner, when its container did. The daemon is asked only when there is no
// supervisor left to tell.
func (h *handle) Wait(ctx context.Context) (driver.Exit, error) {
	exit, err := h.Task.Wait(ctx)
	// Only a container that is reached through the daemon is Unavailable: it runs on, so the wait does too.
	for drover.CodeOf(err) == drover.Unavailable && clock.Sleep(ctx, h.d.cfg.Clock, retryDaemon) {
		exit, err = h.Task.Wait(ctx)
	}
	if err == nil {
		h.unwatchDisk()
	}
	// A kill by the disk watch looks like a lost supervisor; people should read the reason.
	if reason := h.disk.reason.Load(); reason != nil && exit.Err != nil {
		exit.Err = *reason
	}
	if !errors.Is(exit.Err, supervised.ErrVanished) {
		return exit, err
	}
	exit.Err = fmt.Errorf("%w, or the docker daemon was stopped", exit.Err)
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, askDaemon)
	defer cancel()
	if r, err := h.d.docker.ContainerInspect(ctx, h.box.id, client.ContainerInspectOptions{}); err == nil && r.Container.State != nil {
		exit.OOMKilled = r.Container.State.OOMKilled
	}
	return exit, nil
}

// Stop asks the main task to end, by the image's stop signal unless one is given, and kills it after the timeout. A warm
// runner has nobody to ask: it ends.
func (h *handle) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	// A stop signal that an image gives as a number is not used: supervisors take names.
	if signal == "" && strings.HasPrefix(h.box.stopSignal, "SIG") {
		signal = h.box.stopSignal
	}
	return h.Task.Stop(ctx, signal, timeout)
}

// Destroy kills everything and frees everything. Idempotent. When the daemon cannot be reached, the container is killed
// all the same, and what the daemon keeps of it is removed by a later Sweep.
func (h *handle) Destroy(ctx context.Context) error {
	h.Stopping()
	h.unwatchDisk()
	bound, cancel := h.d.cfg.Clock.WithTimeout(ctx, h.d.cfg.RemoveWait)
	err := h.d.free(bound, h.box)
	hangs := bound.Err() != nil
	cancel()
	if err != nil && (hangs || drover.CodeOf(err) == drover.Unavailable) && ctx.Err() == nil {
		h.d.cfg.Log.Warn("the docker daemon is away: its container is killed, and removed when it is back", "container", h.box.id, "error", err)
		err = h.abandon()
	}
	if err != nil {
		return fmt.Errorf("destroying the container: %w", err)
	}
	h.End()
	return nil
}

// abandon does what can be done without the daemon.
func (h *handle) abandon() error {
	if err := h.Last().Kill(); err != nil {
		return err
	}
	h.d.forget(h.box.id)
	// The copy has no container, so free gives back everything else and does not ask the daemon for its removal.
	gone := *h.box
	gone.id = ""
	ctx, cancel := h.d.cfg.Clock.WithTimeout(context.Background(), h.d.cfg.RemoveWait) //nolint:forbidigo // the caller's was used up
	defer cancel()
	err := h.d.free(ctx, &gone)
	h.box.image, h.box.link = gone.image, gone.link
	return err
}

// Network is the address in the container's own network; nil if it has none.
func (h *handle) Network() *network.Status { return h.box.network }
