package runner

import (
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/pool"
	"github.com/drover-project/drover/internal/invariant"
)

// Turn is how a claim goes on: exactly one of the two is set.
type Turn struct {
	Handout *Handout // write its line to the journal, then tell Written
	Waiter  *Waiter  // it waits in line: tell Accept when Effects.Served has it, or Leave when it waits no longer
}

// Handout is a runner that was handed out, to a claim that was not answered yet. It does not change.
type Handout struct {
	Line   AllocClaim
	runner *runner
	env    *env
	waited bool // it counts in the environment's serving
}

// Waiter is a claim that waits in line.
type Waiter struct {
	req   execution.ClaimRequest
	env   *env
	place *pool.Place
	given *runner // reserved for it; nil while it is in line
}

// Claim hands out the freshest warm runner of the environment, or lets the claim wait in line where r.Wait >= 0. The
// request is valid. Errors: NotFound: unknown environment, see Knows; Invalid: limits; Exhausted.
func (c *Core) Claim(now time.Time, r execution.ClaimRequest) (Turn, error) {
	e := c.envs[r.Environment]
	if e == nil {
		return Turn{}, noEnvironment(r.Environment)
	}
	if err := environment.CheckLimits(r.Limits, e.Environment); err != nil {
		return Turn{}, err
	}
	return c.take(now, e, r)
}

// Accept gives a waiter the runner that was reserved for it. If that ended in between, it gets another, which may have
// become warm while nobody waited in line, or waits on. Errors: as Claim.
func (c *Core) Accept(now time.Time, w *Waiter) (Turn, error) {
	if r := w.given; r != nil && r.phase == reserved {
		w.given = nil // from now on the hand-out counts for it
		return Turn{Handout: c.handOut(now, w.env, r, w.req, true)}, nil
	}
	c.Leave(w)
	if key := w.env.Key(); c.envs[key] != w.env {
		return Turn{}, noEnvironment(key)
	}
	return c.take(now, w.env, w.req)
}

// Leave takes a waiter out of the line. Others get the runner that was reserved for it.
func (c *Core) Leave(w *Waiter) {
	w.env.waiters.Leave(w.place)
	if r := w.given; r != nil {
		w.given = nil
		w.env.serving--
		c.settled() // it goes back
		if r.phase == reserved {
			c.addWarm(w.env, r)
		}
	}
	c.demanded(w.env)
}

// Written tells that the hand-out's line stands in the journal, or why not. Only then is the claim answered, with the
// runner. Errors: Unavailable: it could not be written; NotLeader, or Exhausted of a bounded one: that is why; Gone: the runner ended in
// between.
func (c *Core) Written(h *Handout, err error) (execution.Runner, error) {
	// All in one event: a lower demand must not be recorded before the claim.
	r := h.runner
	if h.env.handing--; h.waited {
		h.env.serving--
	}
	c.settled()
	c.demanded(h.env)
	if err != nil {
		if r.phase != gone {
			c.drop(r, drover.Errorf(drover.Gone, "its claim could not be written"))
		}
		if code := drover.CodeOf(err); code == drover.NotLeader || code == drover.Exhausted && h.Line.Bounded {
			return execution.Runner{}, err
		}
		return execution.Runner{}, drover.Errorf(drover.Unavailable, "writing the claim down: %w", err)
	}
	c.claims = append(c.claims, h.Line)
	c.effects.Record = true
	if r.phase == gone {
		return execution.Runner{}, r.reason
	}
	r.phase = claimed
	return r.public(), nil
}

// take hands out a warm runner, or puts the claim into the line.
func (c *Core) take(now time.Time, e *env, r execution.ClaimRequest) (Turn, error) {
	for id, ok := e.warm.Pop(); ok; id, ok = e.warm.Pop() {
		if x := c.runners[id]; c.mayHandOut(id, x) {
			return Turn{Handout: c.handOut(now, e, x, r, false)}, nil
		}
	}
	switch {
	case r.Wait < 0:
		return Turn{}, drover.Errorf(drover.Exhausted, "no runners available for environment %q", e.ID)
	case e.waiters.Len() >= c.maxWaiting:
		return Turn{}, drover.Errorf(drover.Exhausted, "no runners available for environment %q, and %d claims wait already", e.ID, c.maxWaiting)
	}
	w := &Waiter{req: r, env: e}
	w.place = e.waiters.Join(w)
	c.demanded(e)
	return Turn{Waiter: w}, nil
}

// mayHandOut checks the invariant that a runner is handed out at most once: what is on the stack was never claimed.
func (c *Core) mayHandOut(allocID string, r *runner) bool {
	if r != nil && r.phase == warm && r.claim == nil && !c.tombstones.has(allocID) {
		return true
	}
	invariant.Breach(invariant.HandedOutOnce, allocID, "it was warm for a claim, and had been handed out or had ended")
	return false
}

// handOut makes the warm runner the claimer's. From here on it is never warm again.
func (c *Core) handOut(now time.Time, e *env, r *runner, req execution.ClaimRequest, waited bool) *Handout {
	c.uses++
	e.handing++
	idle := req.IdleTimeout
	switch {
	case idle == 0:
		idle = e.IdleTimeout
	case idle < 0:
		idle = 0
	}
	h := &Handout{runner: r, env: e, waited: waited, Line: AllocClaim{AllocID: r.alloc.ID, Claim: drover.Claim{
		RunnerID: RunnerID(e.Key(), r.alloc.ID), ClaimedAt: now.UnixNano(), IdleTimeout: idle,
		Labels: maps.Clone(req.Labels), Env: maps.Clone(req.Env),
	}}}
	if limits := req.Limits; limits != (drover.Limits{}) {
		h.Line.Claim.Limits = &limits
	}
	c.addClaimed(now, e, r, handed, &h.Line.Claim)
	return h
}
