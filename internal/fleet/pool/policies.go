package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// newPoolState starts a pool without machines. What it spent today comes from the ledger, so that a restart does not
// renew a daily budget.
func (c *Core) newPoolState(now time.Time, p *fleet.Policy) *poolState {
	ps := &poolState{policy: p, observed: map[string]observed{}, base: maps.Clone(c.cfg.Attributes), prices: c.prices}
	if c.cfg.Setting != "" {
		ps.setting = "-" + c.cfg.Setting
	}
	if ps.base == nil {
		ps.base = map[string]string{}
	}
	ps.base["fleet.pool"] = p.Name
	if c.cfg.Spent != nil {
		ps.spent.begin(now, c.cfg.Spent(p.Name))
	}
	ps.recomputeOfferings()
	return ps
}

// Policies returns the pools' policies, in their order.
func (c *Core) Policies() []*fleet.Policy {
	list := make([]*fleet.Policy, len(c.pools))
	for i, p := range c.pools {
		list[i] = p.policy
	}
	return list
}

// SetPolicies replaces the pools; policies are canonicalized and valid. The machines of pools that stay are untouched,
// those of pools that are not there any more become orphans, and orphans of pools that come are theirs.
func (c *Core) SetPolicies(now time.Time, policies []*fleet.Policy) {
	var next []*poolState
	for _, policy := range policies {
		p := c.pool(policy.Name)
		switch {
		case p == nil:
			p = c.newPoolState(now, policy)
			c.claim(now, p)
		case p.policy != policy:
			p.policy = policy
			p.recomputeOfferings()
		}
		next = append(next, p)
	}
	for _, p := range c.pools {
		if !slices.Contains(next, p) {
			for _, i := range p.living() {
				c.abandon(now, c.table[i.ID])
			}
		}
	}
	c.pools = next
}

// abandon makes an orphan of a machine whose pool is not there any more.
func (c *Core) abandon(now time.Time, e *entry) {
	if e.sure {
		e.pool.cost -= e.Price
	}
	e.pool = nil
	c.strays[e.ID] = e
	if e.State != fleet.InstanceOrphaned && e.State.CanBecome(fleet.InstanceOrphaned) && e.State != fleet.InstanceDestroying {
		become(e.Instance, fleet.InstanceOrphaned, now, "orphaned", "its pool "+e.Pool+" is not there any more")
	}
}

// claim gives orphans that carry the pool's tag to it.
func (c *Core) claim(now time.Time, p *poolState) {
	for _, id := range slices.Sorted(maps.Keys(c.strays)) {
		e := c.strays[id]
		if e.Pool != p.policy.Name || e.State != fleet.InstanceOrphaned || id == "cloud:"+e.ProviderID {
			continue
		}
		e.pool = p
		if e.sure {
			p.cost += e.Price
		}
		delete(c.strays, id)
		p.instances = append(p.instances, e.Instance)
		// The new policy may sell the same offering at another price or in another quota group: all sums move with it.
		if o := p.offering[e.Offering]; o != nil {
			c.units[e.QuotaGroup] -= e.QuotaUnits
			if e.sure {
				c.sure[e.QuotaGroup] -= e.QuotaUnits
				c.cost += o.Price - e.Price
				p.cost += o.Price - e.Price
			}
			sold(e.Instance, o)
			c.units[e.QuotaGroup] += e.QuotaUnits
			if e.sure {
				c.sure[e.QuotaGroup] += e.QuotaUnits
			}
		} else if e.Behavior == fleet.BehaviorRun {
			e.Behavior = fleet.BehaviorDrain
		}
		state := fleet.InstanceBooting
		if e.NodeID != "" {
			state = fleet.InstanceRegistered
		}
		become(e.Instance, state, now, "adopted", "its pool is there again")
		c.note(now, e, "adopted", e.Reason)
	}
}

// retire sends the machines of a pool that ends away, as they become idle.
func (p *poolState) retire() {
	if !p.policy.Retiring {
		return
	}
	p.demand = nil
	for _, i := range p.living() {
		if i.Behavior == fleet.BehaviorRun {
			i.Behavior = fleet.BehaviorDrain
		}
	}
}

// current returns the template of a machine as this release names it. A machine that an earlier release made from the same
// image and user data is not replaced only because templates now name more.
func (p *poolState) current(template string) string {
	if template == p.policy.FormerTemplate() {
		return p.template
	}
	return template
}

// Template returns the name of what the pool's machines are made from; "" if there is no such pool.
func (c *Core) Template(pool string) string {
	if p := c.pool(pool); p != nil {
		return p.template
	}
	return ""
}

// observed is what machines of an offering turned out to be.
type observed struct {
	size       drover.Capacity
	attributes map[string]string
}

// learn takes over what the node says of itself: an offering that gives less than it promises would be bought for work
// that does not fit, again and again.
func (c *Core) learn(e *entry, r *Report) {
	if r.Total == (drover.Capacity{}) || e.pool == nil || e.Offering == "" {
		return
	}
	e.Capacity = r.Total
	// The smallest machine that was seen counts: work that fits on it fits on every machine of the offering.
	l, known := e.pool.observed[e.Offering]
	size := r.Total
	if known {
		size = l.size.Min(r.Total)
	}
	if known && size == l.size {
		return
	}
	l.size, l.attributes = size, r.Attributes
	e.pool.observed[e.Offering] = l
	e.pool.recomputeOfferings()
}

// known completes an offering with what its nodes will have, and with what they turned out to have.
func (p *poolState) known(o *fleet.Offering) {
	l := p.observed[o.Key]
	all := maps.Clone(p.base)
	maps.Copy(all, l.attributes)
	maps.Copy(all, o.Attributes)
	o.Attributes = all
	if l.size != (drover.Capacity{}) {
		o.Capacity = o.Capacity.Min(l.size)
	}
}
