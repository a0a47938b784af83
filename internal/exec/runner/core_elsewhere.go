package runner

import "github.com/drover-project/drover"

// observeElsewhere looks at an allocation that another server keeps, or none yet. If it was ours our incarnation has ended, and
// this service is about to. What was handed out has not ended by that: its users must not be told so.
func (c *Core) observeElsewhere(snap Snapshot, e *env, known *runner, alloc *drover.Allocation) {
	if known != nil && known.claim != nil {
		return
	}
	if known != nil {
		c.forget(e, known)
		c.changed(e)
	}
	if !ready(alloc) {
		c.keepElsewhere(alloc.ID, nil)
		return
	}
	c.keepElsewhere(alloc.ID, &runner{alloc: alloc, env: e.Key(), of: madeOf(snap, e, alloc), claim: alloc.Claim})
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
