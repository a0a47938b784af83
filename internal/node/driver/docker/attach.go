package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/driver/supervised"
)

// Attach finds a container again after an agent restart; the daemon is not asked. One whose supervisor is gone is
// cleared away, as is one whose program an interrupted start had not executed. Errors: ErrGone.
func (d *Driver) Attach(ctx context.Context, state driver.State) (driver.Handle, error) {
	state, interrupted, err := supervised.Kept(state)
	if err != nil {
		return nil, err
	}
	var s stored
	if err := json.Unmarshal(state.Data, &s); err != nil {
		return nil, fmt.Errorf("reading the container's state: %w", err)
	}
	b := &box{
		id: s.Container, image: s.Image, imageRef: s.ImageRef, stopSignal: s.StopSignal, stateDir: s.StateDir, startedAt: state.StartedAt,
		attached: s.Attached, warm: s.Warm, network: s.Network, disk: s.Disk, groups: d.noGroups(),
	}
	d.remember(b.id)
	d.keepLink(b, s.Wire)
	// The image must not be removed by the delay that began while no agent ran.
	d.images.Hold(&images.Image{ID: b.image, Ref: b.imageRef})
	client, err := d.connect(ctx, b)
	if err == nil && interrupted && !supervised.Started(ctx, client, state.ID) {
		err = errors.Join(driver.ErrGone, client.Close())
	}
	if errors.Is(err, driver.ErrGone) {
		if err := d.free(ctx, b); err != nil {
			d.forget(b.id) // so that a sweep takes it
			d.cfg.Log.Warn("what is left of a container stays until the daemon is back", "container", b.id, "error", err)
		}
		return nil, driver.ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the container's supervisor: %w", err)
	}
	// A kernel of its own has no control groups that executions could be put into: the container's is only read.
	if b.attached {
		d.view(b, client.Pid())
	} else if err := d.adopt(b, client.Pid()); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := d.forwardWire(b); err != nil { // the runner runs on, as it did while there was no agent
		d.cfg.Log.Error("forwarding a runner's ports again", "container", b.id, "error", err)
	}
	h := newHandle(d, b, client, state)
	h.watchDisk(ctx)
	return h, nil
}
