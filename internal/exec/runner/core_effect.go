package runner

// Effects is what must be done outside after an event. The zero value asks for nothing.
type Effects struct {
	// Served are claims that waited in line and are to call Accept now: a runner is reserved for them, or their
	// environment was deleted.
	Served []*Waiter
	// Ended are runners that were handed out and are gone: leases on them end.
	Ended []Ended
	// Changed are environments of whose pool somebody may wait for a change.
	Changed []string
	// Record: there is something to record; take it with Batch.
	Record bool
	// Rearm: the earliest deadline is another one now; NextDeadline has it, and Expire is to be called then.
	Rearm bool
	// Adopted: there are claimed runners that this server did not hand out in this life; take them with Adopted.
	Adopted bool
	// Settled: a claim was recorded, or needs no record any more; who withholds runners is to call Hold again.
	Settled bool
}

// Ended is a runner that was handed out and is gone.
type Ended struct {
	AllocID string
	Reason  error // its code is drover.Gone
}

// Effects returns what must be done outside since the last call. It is valid until the next event.
func (c *Core) Effects() Effects {
	e := c.effects
	c.effects = Effects{Served: e.Served[:0], Ended: e.Ended[:0], Changed: e.Changed[:0]}
	return e
}

// changed tells those who watch the pool.
func (c *Core) changed(e *env) {
	key := e.Key()
	if n := len(c.effects.Changed); n == 0 || c.effects.Changed[n-1] != key {
		c.effects.Changed = append(c.effects.Changed, key)
	}
}

// settled tells those who withhold runners that one of them may be recorded now.
func (c *Core) settled() {
	if c.awaited {
		c.awaited, c.effects.Settled = false, true
	}
}
