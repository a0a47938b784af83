package loopback

import (
	"context"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

const (
	pageSize = 500
	remember = 10 * time.Minute // a machine that ended, so that its intent makes no second one
)

// List implements provider.Provider. It also clears away what machines left that ended by themselves.
func (p *Provider) List(ctx context.Context, page string) (list []provider.Machine, next string, err error) {
	if err := interrupted(ctx); err != nil {
		return nil, "", err
	}
	from, _ := strconv.Atoi(page) // "" is the first
	ids, err := p.ids()
	if err != nil {
		return nil, "", err
	}
	for n := from; n < len(ids); n++ {
		if len(list) == pageSize {
			return list, strconv.Itoa(n), nil
		}
		r, err := p.read(ids[n])
		if err != nil || !p.lists(r.Tags[fleet.TagOwner]) {
			continue // half made by somebody else, or somebody else's
		}
		if err := p.refresh(ctx, r); err != nil {
			return nil, "", err
		}
		if r.ID != "" {
			list = append(list, r.machine())
		}
	}
	return list, "", nil
}

// lists reports whether machines of the owner are listed.
func (p *Provider) lists(owner string) bool {
	return owner == p.cfg.Owner || slices.Contains(p.cfg.Others, owner)
}

// refresh brings a record up to date with what runs. One that is forgotten has no ID any more.
func (p *Provider) refresh(ctx context.Context, r *record) error {
	if r.EndedAt.IsZero() && !p.runs(r) && r.Started { // a create that was cut off is not ended: it will be repeated
		err := p.locked(ctx, func() error { return p.mark(r) })
		if err != nil {
			return err
		}
	}
	switch {
	case r.Dying: // it ended by itself, or a destroy was cut off, perhaps with the process that did it
		_ = p.finish(ctx, r) // the next list tries again
	case !r.EndedAt.IsZero() && p.clock.Now().Sub(r.EndedAt) >= remember:
		_ = os.RemoveAll(p.folder(r.ID)) // the next list tries again
		r.ID = ""
	}
	return nil
}

// runs reports whether the machine's agent does, and finds it.
func (p *Provider) runs(r *record) bool {
	if !lives(r.PID, r.Born) {
		r.PID, r.Born = agentOf(p.data(r.ID))
	}
	return r.PID != 0
}

// mark notes that the machine ended, unless somebody else did.
func (p *Provider) mark(r *record) error {
	newest, err := p.read(r.ID)
	if err != nil {
		return err
	}
	*r = *newest
	if r.EndedAt.IsZero() {
		r.EndedAt, r.Dying = p.clock.Now().UTC(), true
		return p.write(r)
	}
	return nil
}
