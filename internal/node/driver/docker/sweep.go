package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
)

// Sweep removes this agent's containers that no task knows: what an agent that was killed had started and not yet
// written down, or what a daemon that was away kept. Young ones are spared, and all while this driver is young itself:
// tasks are being attached then. Images that an
// earlier agent pulled go too, after their delay. It returns how many it removed.
func (d *Driver) Sweep(ctx context.Context) (removed int, err error) {
	now := d.cfg.Clock.Now()
	if now.Sub(d.since) < d.cfg.SweepGrace {
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
		if known || now.Sub(time.Unix(c.Created, 0)) < d.cfg.SweepGrace {
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
