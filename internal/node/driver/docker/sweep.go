package docker

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
)

// Restored implements driver.Restorer: from now on Sweep removes, which it does at once.
func (d *Driver) Restored(ctx context.Context) {
	d.restored.Store(true)
	d.tidy(ctx)
}

// tidy is Sweep for the log. A daemon that is not there, or that this user may not ask, the fingerprint tells of.
func (d *Driver) tidy(ctx context.Context) {
	n, err := d.Sweep(ctx)
	if n > 0 {
		d.cfg.Log.Info("removed containers that nobody knows", "count", n)
	}
	if code := drover.CodeOf(err); err != nil && code != drover.Unavailable && code != drover.Forbidden {
		d.cfg.Log.Warn("removing containers that nobody knows", "error", err)
	}
}

// Sweep removes this agent's containers that no task knows: what an agent that was killed had started and not yet
// written down, or what a daemon that was away kept. None goes before Restored, as tasks are being attached then; later
// ones are known before they are made. Images that an earlier agent pulled go too, after their delay. It returns how
// many it removed.
func (d *Driver) Sweep(ctx context.Context) (removed int, err error) {
	if !d.restored.Load() {
		return 0, nil
	}
	d.images.Sweep() //nolint:contextcheck // images go later, by a timer
	list, err := d.docker.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", labelOwner+"="+d.cfg.Owner),
	})
	if err != nil {
		return 0, dockererr.Of(err)
	}
	var errs []error
	for _, c := range list.Items {
		d.mu.Lock()
		known := d.known[c.ID] || slices.ContainsFunc(c.Names, func(name string) bool { return d.known[strings.TrimPrefix(name, "/")] })
		d.mu.Unlock()
		if known {
			continue
		}
		if err := d.remove(ctx, c.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}
