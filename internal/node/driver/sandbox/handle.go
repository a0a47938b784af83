package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/network"
)

// handle is a running sandbox.
type handle struct {
	*supervised.Task
	d     *Driver
	box   *box
	ident driver.State
	// network is constant; nil unless it is on the bridge.
	network *network.Status
	disk    disk

	mu    sync.Mutex
	meter grouped.Meter // guarded by mu
}

var (
	_ driver.Handle = (*handle)(nil)
	_ driver.Execer = (*handle)(nil)
	_ driver.Filer  = (*handle)(nil)
	_ driver.Meter  = (*handle)(nil)
)

// newHandle makes the handle of a sandbox whose supervisor was reached. The client is the task's to close from now on.
func newHandle(d *Driver, b *box, client *supervisor.Client, ident driver.State, warm bool) *handle {
	again := supervised.At(b.stateDir, func() supervisor.Options { return b.options(d) })
	connect := func(ctx context.Context) (*supervisor.Client, error) {
		if ended, err := b.child.Ended(ctx); ended || err != nil { // we killed it: nobody has to be asked
			return nil, cmp.Or(err, driver.ErrGone)
		}
		return again(ctx)
	}
	if b.child == nil {
		connect = again
	}
	task := supervised.New(supervised.Config{Connect: connect, Warm: warm, OOMKills: b.groups(d).OOMKills}, client)
	return &handle{Task: task, d: d, box: b, ident: ident, meter: d.newMeter(b), network: b.net.status()}
}

// State returns what Attach needs.
func (h *handle) State() driver.State { return h.ident }

// Stop asks the main task to end, and kills it after the timeout. A warm runner has nobody to ask: it ends.
func (h *handle) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	if !h.Warm() {
		return h.Task.Stop(ctx, signal, timeout)
	}
	h.Stopping()
	return h.d.kill(ctx, h.box)
}

// Destroy kills everything and frees everything. Idempotent.
func (h *handle) Destroy(ctx context.Context) error {
	h.Stopping()
	h.disk.end()
	if err := h.d.free(ctx, h.box); err != nil {
		return fmt.Errorf("destroying the sandbox: %w", err)
	}
	h.End()
	return nil
}

// Network is the sandbox's address on the bridge; nil when there is loopback only, or the host's.
func (h *handle) Network() *network.Status { return h.network }
