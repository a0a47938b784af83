package runner

import (
	"cmp"
	"slices"
)

// wanted is how many runners the environment needs beside its pool: a claim that waits is served by a runner that is
// started for it, also where the pool keeps none.
func (e *env) wanted() int {
	if e.raw {
		return e.waiters.Len() + e.serving
	}
	return max(0, e.waiters.Len()+e.serving-e.PoolSize)
}

// demanded has the environment's demand recorded if it changed.
func (c *Core) demanded(e *env) {
	if e.wanted() != e.demand {
		c.effects.Record = true
	}
}

// demands returns what changed of all environments' demands, and takes it as recorded with the claims. As long as
// somebody draws from the pool, a demand falls by no more than what is claimed. Otherwise the pool would shrink, and
// could stop a runner that is handed out at this moment.
func (c *Core) demands(claims []AllocClaim) (changed []Demand) {
	claimed := map[string]int{}
	for _, line := range claims {
		id, _, _ := allocOf(line.Claim.RunnerID)
		claimed[id]++
	}
	for id, e := range c.envs {
		want := e.wanted()
		if e.drawn() {
			want = max(want, e.demand-claimed[id])
		}
		if want != e.demand {
			changed = append(changed, Demand{Environment: id, Runners: want})
			e.demand = want
		}
	}
	slices.SortFunc(changed, func(a, b Demand) int { return cmp.Compare(a.Environment, b.Environment) })
	return changed
}

// drawn reports whether somebody is being handed a runner, or waits for one.
func (e *env) drawn() bool { return e.handing+e.serving+e.waiters.Len() > 0 }

// forgetDemands has demands recorded again that could not be.
func (c *Core) forgetDemands(demands []Demand) {
	for _, d := range demands {
		if e := c.envs[d.Environment]; e != nil {
			e.demand = -1
		}
	}
}
