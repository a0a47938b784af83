package runner

import "time"

// Withhold keeps allocations that are about to be stopped from becoming warm, until GiveBack. Hold is to be called then.
func (c *Core) Withhold(allocIDs []string) {
	for _, id := range allocIDs {
		c.held[id]++
	}
}

// Hold takes warm runners out of circulation. It reports whether some of the allocations were handed out and are not
// recorded as that: then it is to be called again when Effects.Settled says so.
func (c *Core) Hold(snap Snapshot, allocIDs []string) (pending bool) {
	for _, id := range allocIDs {
		r := c.runners[id]
		switch {
		case r == nil:
		case r.phase == warm:
			c.forget(c.envs[r.env], r)
		case r.phase == reserved:
			pending = true // one who waited in line is about to take it
		default:
			a := snap.Allocation(id)
			pending = pending || a != nil && a.Claim == nil && !a.Terminal()
		}
	}
	c.awaited = c.awaited || pending
	return pending
}

// GiveBack lets those that were not stopped be handed out again.
func (c *Core) GiveBack(now time.Time, snap Snapshot, allocIDs []string) {
	for _, id := range allocIDs {
		if c.held[id]--; c.held[id] <= 0 {
			delete(c.held, id)
			c.observe(now, snap, id)
		}
	}
}
