package pool

import (
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
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
		p.spent.charge(now, p.cost)
	}
	sooner(c.retryCalls(now))
	for _, p := range c.pools {
		sooner(c.decidePool(now, p))
	}
	sooner(c.startList(now))
	// A wake-up that is already due must not make the loop spin: it comes a millisecond later.
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

// input collects what a decision about the pool depends on. Its slices and maps are the core's own: the scaler only
// reads them.
func (c *Core) input(now time.Time, p *poolState) scaler.Input {
	return scaler.Input{
		Now: now, Policy: p.policy, Template: p.template, Offerings: p.offerings, Demand: p.demand, Instances: p.living(), GroupUsed: c.units,
		Beliefs: c.beliefs, Pace: p.pace, Spent: p.spent.today(now), Listed: c.list.complete > 0, Settled: c.settled(now, p),
		Batch: c.batch(p),
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

// decidePool asks the scaler about one pool, begins what it wants, and returns when to ask again; the zero time = when
// something happens. Until the picture is settled it also wakes at the end of the adoption grace.
func (c *Core) decidePool(now time.Time, p *poolState) time.Time {
	p.retire()
	in := c.input(now, p)
	in.Short = c.shortFor(p)
	var answerAt time.Time
	p.last, answerAt = c.cfg.Sharing.turn(in, c.trouble, c.cfg.Decide)
	if !answerAt.IsZero() && (p.last.Wake.IsZero() || answerAt.Before(p.last.Wake)) {
		p.last.Wake = answerAt
	}
	p.pace.Decided(now, &p.last)
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

// shortFor is what other pools lack of quotas, beside what is on its way out.
func (c *Core) shortFor(p *poolState) (list []scaler.Shortage) {
	for _, other := range c.pools {
		if other != p {
			list = append(list, other.last.Short...)
		}
	}
	if len(list) == 0 {
		return nil
	}
	leaving := map[string]int64{}
	for _, e := range c.table { // sums only: the order does not matter
		if e.State == fleet.InstanceDestroying || e.State == fleet.InstanceDraining && !e.Busy() {
			leaving[e.QuotaGroup] += e.QuotaUnits
		}
	}
	for k := range list {
		n := min(list[k].Units, leaving[list[k].Group])
		list[k].Units -= n
		leaving[list[k].Group] -= n
	}
	return list
}

// perform turns one action of the scaler into changes of state and effects. An action on a machine that went meanwhile
// is dropped, as the decision behind it no longer holds.
func (c *Core) perform(now time.Time, p *poolState, a *scaler.Action) {
	if a.Kind == fleet.ActionCreate {
		c.plan(now, p, a)
		return
	}
	e := c.table[a.Instance]
	if e == nil {
		return
	}
	c.audit(fleet.Audit{
		At: now, Pool: p.policy.Name, Instance: a.Instance, What: string(a.Kind), Why: a.Why, Reason: a.Reason, Count: 1,
		Offering: e.Offering,
	})
	switch a.Kind {
	case fleet.ActionDrain:
		c.drain(now, e, a.Why, a.Reason)
	case fleet.ActionUndrain:
		become(e.Instance, fleet.InstanceActive, now, a.Why, a.Reason)
		c.effects = append(c.effects, Effect{Kind: EffectUndrain, Instance: e.ID, NodeID: e.NodeID})
	case fleet.ActionDestroy:
		if a.Why == scaler.WhyBoot {
			if o := p.offering[e.Offering]; o != nil && !e.Adopted {
				c.beliefs.BootFailed(now, o, e.Template)
			}
		}
		c.destroy(now, e, a.Why, a.Reason)
	case fleet.ActionCreate: // has no instance yet
	}
}

// plan turns a create into intents, which are recorded before the cloud is asked.
func (c *Core) plan(now time.Time, p *poolState, a *scaler.Action) {
	line := fleet.Audit{At: now, Pool: p.policy.Name, What: string(a.Kind), Why: a.Why, Reason: a.Reason, Count: a.Count, Offering: a.Offering}
	for left := a.Count; left > 0; {
		n := min(left, c.batch(p))
		left -= n
		ids := c.intentIDs(n)
		eff := Effect{Kind: EffectRecord}
		var intents []provider.Intent
		for _, id := range ids {
			i := &fleet.Instance{Hedge: a.Hedge, Durable: fleet.Durable{
				ID: id, Pool: p.policy.Name, Provider: c.cfg.Provider, Behavior: fleet.BehaviorRun, Template: p.template, PlannedAt: now,
				Bought: a.Reason,
			}}
			sold(i, a.Buys)
			if p.policy.Expire > 0 {
				i.ExpiresAt = now.Add(p.policy.Expire)
			}
			become(i, fleet.InstancePlanned, now, a.Why, a.Reason)
			c.add(i, p)
			line.Several = append(line.Several, i.ID)
			intents = append(intents, c.intent(p, i))
			eff.Intents = append(eff.Intents, i.Durable)
		}
		eff.Request = request(p.policy, p.template, c.cfg.Owner, a.Buys, intents)
		// The budget is spent at the decision, so that the next one does not spend it again.
		c.beliefs.Started(now, provider.CallCreate, n)
		c.effects = append(c.effects, eff)
	}
	if len(line.Several) == 1 {
		line.Instance, line.Several = line.Several[0], nil
	}
	c.audit(line)
}

// batch is how many machines a create of the pool makes at most: where a batch shares its user data, they must be fit for
// it, and not too long.
func (c *Core) batch(p *poolState) int {
	most := c.cfg.Caps.Batch
	if !c.cfg.Caps.Shared || most < 2 {
		return most
	}
	if c.cfg.Shareable == nil || !c.cfg.Shareable(p.policy) {
		return 1
	}
	if p.batch == 0 || p.batchOf != p.policy {
		for most > 1 && c.cfg.UserData != nil && c.cfg.Caps.UserDataMax > 0 {
			b := provider.Batch{ID: strings.Repeat("0", len("ffffffff-ffff-4fff-8fff-ffffffffffff")), Size: most}
			if len(c.cfg.UserData(p.policy, b.Intent(0))) <= c.cfg.Caps.UserDataMax {
				break
			}
			most /= 2
		}
		p.batch, p.batchOf = most, p.policy
	}
	return p.batch
}

// intentIDs are the ids of new intents that one create asks for.
func (c *Core) intentIDs(n int) []string {
	if c.cfg.Caps.Shared && n > 1 {
		return provider.Batch{ID: c.cfg.IDs.New(), Size: n}.Intents()
	}
	ids := make([]string, n)
	for k := range ids {
		ids[k] = c.cfg.IDs.New()
	}
	return ids
}

// intent is what the cloud is asked to make the machine from. A repeated create must give the same tags and user data,
// as clouds refuse an idempotency key that is used with other parameters.
func (c *Core) intent(p *poolState, i *fleet.Instance) provider.Intent {
	in := provider.Intent{ID: i.ID, Tags: map[string]string{fleet.TagIntent: i.ID}}
	if c.cfg.UserData != nil {
		in.UserData = c.cfg.UserData(p.policy, i.ID)
	}
	return in
}

// drain stops new work on the machine. A machine without a node has no agent to tell, so it counts as quiet at once if
// it has no work.
func (c *Core) drain(now time.Time, e *entry, why, reason string) {
	become(e.Instance, fleet.InstanceDraining, now, why, reason)
	if e.NodeID == "" {
		e.Quiet = e.Work == 0
		return
	}
	c.effects = append(c.effects, Effect{Kind: EffectDrain, Instance: e.ID, NodeID: e.NodeID, Deadline: e.InterruptAt})
}

// destroy moves the machine to destroying, and asks the cloud if the cloud's id of it is known. It checks that no work
// is lost.
func (c *Core) destroy(now time.Time, e *entry, why, reason string) {
	checkIdle(e.Instance, why)
	become(e.Instance, fleet.InstanceDestroying, now, why, reason)
	if e.ProviderID == "" { // the answer to its create is not there yet: its machine goes as soon as it is known
		return
	}
	c.callDestroy(now, e)
}

// callDestroy begins one destroy, unless a create or destroy of the machine is under way. The console of a machine that
// did not boot is read with the first call only, as it is gone afterwards.
func (c *Core) callDestroy(now time.Time, e *entry) {
	if e.inFlight {
		return
	}
	e.inFlight = true
	c.beliefs.Started(now, provider.CallDestroy, 1)
	unread := e.Why == scaler.WhyBoot && !e.consoled
	e.consoled = e.consoled || unread
	c.effects = append(c.effects, Effect{Kind: EffectDestroy, Instance: e.ID, ProviderID: e.ProviderID, Console: unread})
}
