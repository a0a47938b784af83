package pool

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/fleet/provider"
)

// perform does one effect and tells the core how it ended. A call that takes too long is ambiguous.
func (l *loop) perform(e Effect) {
	ctx, cancel := l.deps.Clock.WithTimeout(l.ctx, callTimeout)
	defer cancel()
	switch e.Kind {
	case EffectRecord:
		err := l.deps.Intents.Record(ctx, e.Intents)
		l.tell(func(now time.Time, c *Core) { c.Recorded(now, &e, err) })
	case EffectForget: // the update that follows says that it is gone
	case EffectCreate:
		made, err := l.deps.Provider.Create(ctx, *e.Request)
		if err != nil {
			l.deps.Log.Warn("creating machines", "offering", e.Request.Offering.Key, "wanted", len(e.Request.Intents), "made", len(made), "kind",
				provider.KindOf(err), "error", err)
		}
		l.tell(func(now time.Time, c *Core) { c.Created(now, e.Request, made, err) })
	// The console has to be read before the destroy, which usually deletes it.
	case EffectDestroy:
		if shows, ok := l.deps.Provider.(provider.Consoler); ok && e.Console {
			text, err := shows.Console(ctx, e.ProviderID)
			l.tell(func(now time.Time, c *Core) { c.Wrote(now, e.Instance, text, err) })
		}
		err := l.deps.Provider.Destroy(ctx, e.ProviderID)
		l.tell(func(now time.Time, c *Core) { c.Destroyed(now, e.Instance, err) })
	case EffectTag:
		err := l.deps.Provider.SetTags(ctx, e.ProviderID, e.Tags)
		l.tell(func(now time.Time, c *Core) { c.Tagged(now, err) })
	case EffectList:
		list, err := ListAll(ctx, l.deps.Provider)
		l.tell(func(now time.Time, c *Core) { c.Listed(now, list, err == nil, err) })
	case EffectDrain:
		l.steer(e, func() error { return l.deps.Nodes.Drain(ctx, e.NodeID, e.Deadline) })
	case EffectCordon:
		l.steer(e, func() error { return l.deps.Nodes.Cordon(ctx, e.NodeID) })
	case EffectUndrain:
		l.steer(e, func() error { return l.deps.Nodes.Undrain(ctx, e.NodeID) })
	}
}

// steer only logs failures: the core drains again at the next report of a node that should be drained and is not.
func (l *loop) steer(e Effect, do func() error) {
	if err := do(); err != nil {
		l.deps.Log.Warn("steering a node", "what", e.Kind, "node", e.NodeID, "error", err)
	}
}

// tell hands an answer to the loop, unless it ended.
func (l *loop) tell(f func(time.Time, *Core)) {
	select {
	case l.answers <- f:
	case <-l.ctx.Done():
	}
}

// ListAll reads every page; what it gives with an error is not everything.
func ListAll(ctx context.Context, p provider.Provider) (all []provider.Machine, err error) {
	for page := ""; ; {
		list, next, err := p.List(ctx, page)
		all = append(all, list...)
		if err != nil || next == "" {
			return all, err
		}
		page = next
	}
}
