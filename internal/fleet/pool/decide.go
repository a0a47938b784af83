package pool

import (
	"time"

	"drover"
	"drover/internal/fleet/provider"
	"drover/internal/fleet/scaler"
)

// Decide does what is due, asks the scaler about every pool, and returns when it wants to be called again if nothing
// happens; the zero time = never.
func (c *Core) Decide(now time.Time) (wake time.Time) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	for _, p := range c.pools {
		p.spent.Charge(now, p.cost)
	}
	sooner(c.due(now))
	for _, p := range c.pools {
		sooner(c.decidePool(now, p))
	}
	sooner(c.lists(now))
	if !wake.IsZero() && !wake.After(now) {
		wake = now.Add(time.Millisecond)
	}
	return wake
}

// Input returns what the scaler would be asked about a pool: for dry runs. Errors: NotFound.
func (c *Core) Input(now time.Time, pool string) (scaler.Input, error) {
	p := c.pool(pool)
	if p == nil {
		return scaler.Input{}, drover.Errorf(drover.NotFound, "no pool %q", pool)
	}
	in := c.input(now, p)
	in.Demand = c.cfg.Sharing.peek(p.policy, p.demand)
	return in, nil
}

func (c *Core) input(now time.Time, p *poolState) scaler.Input {
	return scaler.Input{
		Now: now, Policy: p.policy, Template: p.template, Offerings: p.offerings, Demand: p.demand, Instances: p.living(), GroupUsed: c.units,
		Beliefs: c.beliefs, Pace: p.pace, Spent: p.spent.Today(now), Listed: c.list.complete > 0, Settled: c.settled(now, p),
	}
}

// settled reports whether the whole picture was seen: the cloud's list, and the agents that could call home by now.
func (c *Core) settled(now time.Time, p *poolState) bool {
	grace := 30 * time.Second
	if p != nil {
		grace = p.policy.AdoptGrace
	}
	return c.list.complete > 0 && now.Sub(c.started) >= grace
}

func (c *Core) decidePool(now time.Time, p *poolState) time.Time {
	p.retire()
	in := c.input(now, p)
	var answerAt time.Time
	p.last, answerAt = c.cfg.Sharing.turn(in, c.trouble, c.cfg.Decide)
	if !answerAt.IsZero() && (p.last.Wake.IsZero() || answerAt.Before(p.last.Wake)) {
		p.last.Wake = answerAt
	}
	p.pace.Busy(now, p.last.Busy)
	p.pace.Waits(now, p.last.Awaits > 0)
	for k := range p.last.Actions {
		c.perform(now, p, &p.last.Actions[k])
	}
	if !in.Settled {
		if at := c.started.Add(p.policy.AdoptGrace); at.After(now) && (p.last.Wake.IsZero() || at.Before(p.last.Wake)) {
			return at
		}
	}
	return p.last.Wake
}

func (c *Core) perform(now time.Time, p *poolState, a *scaler.Action) {
	if a.Kind == scaler.Create {
		c.plan(now, p, a)
		return
	}
	e := c.table[a.Instance]
	if e == nil {
		return
	}
	c.audit(Entry{At: now, Pool: p.policy.Name, Instance: a.Instance, What: string(a.Kind), Why: a.Why, Reason: a.Reason, Count: 1, Offering: e.Offering})
	switch a.Kind {
	case scaler.Drain:
		c.drain(now, e, a.Why, a.Reason)
	case scaler.Undrain:
		become(e.Instance, drover.InstanceActive, now, a.Why, a.Reason)
		c.effects = append(c.effects, Effect{Kind: EffectUndrain, Instance: e.ID, NodeID: e.NodeID})
	case scaler.Destroy:
		if a.Why == scaler.WhyBoot {
			if o := p.offering[e.Offering]; o != nil && !e.Adopted {
				c.beliefs.BootFailed(now, o, e.Template)
			}
		}
		c.destroy(now, e, a.Why, a.Reason)
	case scaler.Create: // has no instance yet
	}
}

// plan turns a create into intents, which are recorded before the cloud is asked.
func (c *Core) plan(now time.Time, p *poolState, a *scaler.Action) {
	c.audit(Entry{At: now, Pool: p.policy.Name, What: string(a.Kind), Why: a.Why, Reason: a.Reason, Count: a.Count, Offering: a.Offering.Key})
	for left := a.Count; left > 0; {
		n := min(left, c.cfg.Caps.Batch)
		left -= n
		eff := Effect{Kind: EffectRecord}
		var intents []provider.Intent
		for range n {
			i := &drover.Instance{
				ID: c.cfg.IDs.New(), Pool: p.policy.Name, Provider: c.cfg.Provider, Behavior: drover.BehaviorRun, Hedge: a.Hedge,
				Template: p.template, PlannedAt: now,
			}
			sold(i, a.Offering)
			if p.policy.Expire > 0 {
				i.ExpiresAt = now.Add(p.policy.Expire)
			}
			become(i, drover.InstancePlanned, now, a.Why, a.Reason)
			c.add(i, p)
			intents = append(intents, c.intent(p, i))
			eff.Intents = append(eff.Intents, Intent{ID: i.ID, Pool: i.Pool, Offering: i.Offering, Template: i.Template, At: now})
		}
		eff.Request = request(p.policy, c.cfg.Owner, a.Offering, intents)
		// The budget is spent at the decision, so that the next one does not spend it again.
		c.beliefs.Started(now, provider.CallCreate, n)
		c.effects = append(c.effects, eff)
	}
}

func (c *Core) intent(p *poolState, i *drover.Instance) provider.Intent {
	in := provider.Intent{ID: i.ID, Tags: map[string]string{drover.TagIntent: i.ID}}
	if c.cfg.UserData != nil {
		in.UserData = c.cfg.UserData(p.policy, i.ID)
	}
	return in
}

func (c *Core) drain(now time.Time, e *entry, why, reason string) {
	become(e.Instance, drover.InstanceDraining, now, why, reason)
	if e.NodeID == "" {
		e.Quiet = e.Work == 0
		return
	}
	c.effects = append(c.effects, Effect{Kind: EffectDrain, Instance: e.ID, NodeID: e.NodeID, Deadline: e.InterruptAt})
}

func (c *Core) destroy(now time.Time, e *entry, why, reason string) {
	become(e.Instance, drover.InstanceDestroying, now, why, reason)
	if e.ProviderID == "" { // the answer to its create is not there yet: its machine goes as soon as it is known
		return
	}
	c.callDestroy(now, e)
}

func (c *Core) callDestroy(now time.Time, e *entry) {
	if e.inFlight {
		return
	}
	e.inFlight = true
	c.beliefs.Started(now, provider.CallDestroy, 1)
	c.effects = append(c.effects, Effect{Kind: EffectDestroy, Instance: e.ID, ProviderID: e.ProviderID})
}
