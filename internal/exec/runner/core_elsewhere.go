package runner

import "github.com/drover-project/drover"

// observeElsewhere looks at an allocation that another server keeps, or none yet. If it was ours, its lease was given back or
// taken away: from then on what becomes of it is the other's to say.
func (c *Core) observeElsewhere(snap Snapshot, e *env, known *runner, alloc *drover.Allocation) {
	if known != nil {
		c.changed(e)
		c.end(known, drover.Errorf(drover.Gone, "another server keeps the runner now"))
	}
	if !ready(alloc) {
		c.keepElsewhere(alloc.ID, nil)
		return
	}
	c.keepElsewhere(alloc.ID, &runner{alloc: alloc, env: e.ID, of: madeOf(snap, e, alloc), claim: alloc.Claim})
}

// keepElsewhere notes what another server keeps, nil: nothing.
func (c *Core) keepElsewhere(allocID string, r *runner) {
	if old := c.elsewhere[allocID]; old != nil {
		c.countElsewhere(old, -1)
		delete(c.elsewhere, allocID)
	}
	if r != nil {
		c.countElsewhere(r, 1)
		c.elsewhere[allocID] = r
	}
}

func (c *Core) countElsewhere(r *runner, n int) {
	e := c.envs[r.env]
	switch {
	case e == nil:
	case r.claim == nil:
		e.elsewhere.warm += n
		c.changed(e)
	default:
		e.elsewhere.claimed += n
	}
}
