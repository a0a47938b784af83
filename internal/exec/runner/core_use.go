package runner

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Runner returns a claimed runner. Errors: NotFound, Gone.
func (c *Core) Runner(runnerID string) (execution.Runner, error) {
	r, err := c.find(runnerID)
	if err != nil {
		return execution.Runner{}, err
	}
	return r.public(), nil
}

// Use takes a claimed runner into use: its idle timer stands still until Return. It returns the runner as it was
// before, and the environment that it was made of. Errors: NotFound, Gone.
func (c *Core) Use(now time.Time, runnerID string) (as execution.Runner, of execution.Environment, err error) {
	r, err := c.find(runnerID)
	if err != nil {
		return as, of, err
	}
	as = r.public()
	r.busy++
	c.uses++
	c.rearm(now, r)
	return as, r.of, nil
}

// Return ends one use of a runner.
func (c *Core) Return(now time.Time, allocID string) {
	c.uses++
	if r := c.runners[allocID]; r != nil { // else it is gone
		r.busy--
		c.rearm(now, r)
	}
}

// Extension returns the line that gives a claimed runner another idle timeout: write it to the journal, then tell
// Extended. Errors: NotFound, Gone.
func (c *Core) Extension(runnerID string, idle time.Duration) (AllocClaim, error) {
	r, err := c.find(runnerID)
	if err != nil {
		return AllocClaim{}, err
	}
	claim := *r.claim
	claim.IdleTimeout = max(idle, 0)
	return AllocClaim{AllocID: r.alloc.ID, Claim: claim}, nil
}

// Extended starts the runner's idle timer anew, with the timeout of the line. Errors: Gone.
func (c *Core) Extended(now time.Time, line AllocClaim) (execution.Runner, error) {
	c.claims = append(c.claims, line) // also if it ended in between: then the journal may forget the line
	c.effects.Record = true
	r, err := c.find(line.Claim.RunnerID)
	if err != nil {
		return execution.Runner{}, err
	}
	r.claim = &line.Claim
	c.rearm(now, r)
	return r.public(), nil
}

// Release ends a claimed runner: it can't be used from now on. The release is recorded when Released tells that the
// journal has it. The reason has the code Gone. Errors: NotFound, Gone.
func (c *Core) Release(runnerID string, reason error) (allocID string, err error) {
	r, err := c.find(runnerID)
	if err != nil {
		return "", err
	}
	c.release(r, reason, true)
	return r.alloc.ID, nil
}

// Expire releases the runners that nobody used for their idle timeout.
func (c *Core) Expire(now time.Time) (allocIDs []string) {
	allocIDs = c.deadlines.Due(now)
	for _, id := range allocIDs {
		c.release(c.runners[id], drover.Errorf(drover.Gone, "%w", ErrIdle), false)
	}
	return allocIDs
}

// NextDeadline is when Expire has something to do; ok is false if no runner has a deadline.
func (c *Core) NextDeadline() (at time.Time, ok bool) { return c.deadlines.Next() }

// release ends the runner; asked says that its claimer wants that. Until the journal has the release it must keep the claim: see Batch.
func (c *Core) release(r *runner, reason error, asked bool) {
	c.end(r, reason)
	c.uses++
	c.unwritten[r.alloc.ID] = release{r.alloc.ID, reason.Error(), asked}
	c.settled()
}

// Released tells whether the journal has the release. It is recorded all the same if not; but if this process is killed
// before, the next one takes the runner as claimed.
func (c *Core) Released(allocID string, written bool) {
	c.releases = append(c.releases, c.unwritten[allocID])
	c.effects.Record = true
	if written {
		delete(c.unwritten, allocID)
	}
}

// drop ends a runner and has its allocation stopped, without a line of the journal.
func (c *Core) drop(r *runner, reason error) {
	c.release(r, reason, false)
	c.Released(r.alloc.ID, true)
}
