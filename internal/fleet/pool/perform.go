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
	if err := l.leads(ctx, e.Kind); err != nil {
		l.withhold(e, err)
		return
	}
	switch e.Kind {
	case EffectRecord:
		err := l.written(func() error { return l.deps.Intents.Record(ctx, e.Intents) })
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

// leads returns once this server surely leads, if what is to be done needs that. A server that was stopped and goes on would
// else do what it decided before, though another one leads by now. It may be stopped right behind this, too: then the
// intent's key keeps a create from making a second machine, and a destroy is in the log. Errors: it does not lead.
func (l *loop) leads(ctx context.Context, kind EffectKind) error {
	switch kind {
	case EffectRecord, EffectList, EffectForget: // the log refuses the record itself; the others change nothing
		return nil
	default:
	}
	if at := l.led.Load(); l.deps.Leads == nil || at != nil && l.deps.Clock.Now().Sub(*at) < surelyLeads {
		return nil
	}
	return l.written(func() error { return l.deps.Leads(ctx) })
}

// written does what only a leader can, and notes when this server led.
func (l *loop) written(do func() error) error {
	began := l.deps.Clock.Now()
	err := do()
	if err == nil {
		l.led.Store(&began)
	}
	return err
}

// withhold tells the core that an effect was not begun, as this server may not lead any more.
func (l *loop) withhold(e Effect, why error) {
	l.deps.Log.Warn("nothing is done about machines by a server that may not lead", "what", e.Kind, "instance", e.Instance, "error", why)
	err := &provider.Error{Kind: provider.Transient, Message: "this server may not lead any more: " + why.Error()}
	switch e.Kind {
	case EffectCreate:
		l.tell(func(now time.Time, c *Core) { c.Created(now, e.Request, nil, err) })
	case EffectDestroy:
		l.tell(func(now time.Time, c *Core) { c.Destroyed(now, e.Instance, err) })
	case EffectTag:
		l.tell(func(now time.Time, c *Core) { c.Tagged(now, err) })
	default: // the core steers again
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
