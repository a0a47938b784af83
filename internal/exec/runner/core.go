package runner

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/pool"
)

// Core knows the warm and the claimed runners of all environments, and decides who gets which. It is a value without I/O, locks
// and goroutines. What happens is told to it with the time, and what must be done outside is taken from it as Effects after
// each event. Service is the shell around it; the simulation drives the same Core in virtual time. DESIGN.md lists states,
// events and effects. It is not for use by several goroutines at once.
type Core struct {
	maxWaiting int
	lease      uint64 // of the runners that are this server's; 0 = it is the only one
	envs       map[string]*env
	runners    map[string]*runner // by allocation; those that are gone are not in it
	elsewhere  map[string]*runner // those that other servers keep, as the state says
	tombstones tombstones
	deadlines  pool.Deadlines     // of idle runners, by allocation
	claims     []AllocClaim       // to be recorded
	releases   []release          // to be recorded, after the claims
	unwritten  map[string]release // by allocation: the journal does not have them
	uses       uint64             // of runners, so far: claims, releases, leases and their ends
	held       map[string]int     // allocations that are about to be stopped, and how many times
	awaited    bool               // somebody who withholds runners waits for claims to be recorded
	adopted    []string           // ids of claimed runners that this server did not hand out in this life: something may run in them
	effects    Effects
}

// env is an environment with its pool.
type env struct {
	execution.Environment
	version uint64     // ModifyIndex of the job it was read from
	warm    pool.Stack // of allocations
	claimed int
	waiters pool.Queue[*Waiter]
	serving int  // runners that are reserved for a waiter, or handed to one, and whose claim is not in line to be recorded yet
	handing int  // runners that were handed out, and whose claim is not in line to be recorded yet
	demand  int  // as recorded; -1 = not known
	raw     bool // the demand counts all claims that wait: the state adds up those of several servers and takes the pool's size off

	elsewhere struct{ warm, claimed int } // that other servers keep
}

// phase is where a runner is in its life. It only grows, except that a reserved one which nobody takes is warm again.
type phase uint8

const (
	warm     phase = iota // on the stack of its environment
	reserved              // kept for a claim that waited in line, until that takes it or leaves
	handed                // a claim has it; its line of the journal is being written
	claimed               // the claim was answered; leases may be held
	gone                  // it ended, was released, or stopped answering before it was claimed
)

// runner is a warm or claimed one.
type runner struct {
	alloc  *drover.Allocation
	env    string
	of     execution.Environment // as it was made of
	phase  phase
	claim  *drover.Claim // nil before it was handed out
	busy   int           // leases held
	reason error         // why it ended after it was handed out
}

// release is a runner that has ended here, and is still to be stopped in the state.
type release struct {
	allocID, reason string
	asked           bool // see Releases
}

// maxTombstones bounds the ended runners that are remembered, at about 250 bytes each. It is what ends in five minutes at
// ten thousand cycles a minute; the state forgets an ended allocation sooner.
const maxTombstones = 50_000

// NewCore returns a Core that knows nothing; Load and ReadAll tell it what there is. maxWaiting bounds the claims that
// wait for a runner, for each environment. Of several servers each has only the runners with its lease.
func NewCore(maxWaiting int, lease uint64) *Core {
	return &Core{
		maxWaiting: maxWaiting, lease: lease, envs: map[string]*env{}, runners: map[string]*runner{}, elsewhere: map[string]*runner{},
		tombstones: newTombstones(maxTombstones), unwritten: map[string]release{}, held: map[string]int{},
	}
}

// RunnerID makes a runner's id; environments are named by their keys in this package (execution.Key).
func RunnerID(environmentID, allocID string) string { return environmentID + "-" + allocID }

const uuidLength = 36

// AllocOf returns the allocation in a runner's id; "" if it is none.
func AllocOf(runnerID string) string {
	_, allocID, _ := allocOf(runnerID)
	return allocID
}

// allocOf returns the allocation in a runner's id.
func allocOf(runnerID string) (environmentID, allocID string, ok bool) {
	cut := len(runnerID) - uuidLength
	if cut < 2 || runnerID[cut-1] != '-' {
		return "", "", false
	}
	return runnerID[:cut-1], runnerID[cut:], true
}

// find returns a claimed runner. Errors: Gone, NotFound.
func (c *Core) find(runnerID string) (*runner, error) {
	if envID, allocID, ok := allocOf(runnerID); ok {
		if r := c.runners[allocID]; r != nil && r.claim != nil && r.env == envID {
			return r, nil
		}
		if reason := c.tombstones.reasons[allocID]; reason != nil {
			return nil, reason
		}
		if r := c.elsewhere[allocID]; r != nil && r.env == envID { // the state may not know yet that it was claimed
			return nil, drover.Errorf(drover.NotLeader, "runner %q is kept by another server", runnerID)
		}
	}
	return nil, drover.Errorf(drover.NotFound, "runner %q not found", runnerID)
}

// addWarm reserves the runner for whoever waits longest, else puts it on the stack.
func (c *Core) addWarm(e *env, r *runner) {
	c.runners[r.alloc.ID] = r
	if w, ok := e.waiters.Serve(); ok {
		r.phase, w.given = reserved, r
		e.serving++
		c.effects.Served = append(c.effects.Served, w)
		return
	}
	r.phase = warm
	e.warm.Push(r.alloc.ID)
	c.changed(e)
}

// addClaimed takes the runner as claimed, by a hand-out of ours or as the state or the journal says.
func (c *Core) addClaimed(now time.Time, e *env, r *runner, p phase, claim *drover.Claim) {
	r.phase, r.claim = p, claim
	c.runners[r.alloc.ID] = r
	e.claimed++
	c.rearm(now, r)
}

// rearm starts the idle timer anew, or stops it while the runner is in use.
func (c *Core) rearm(now time.Time, r *runner) {
	if r.busy > 0 || r.claim.IdleTimeout == 0 {
		c.deadlines.Clear(r.alloc.ID)
		return
	}
	if c.deadlines.Set(r.alloc.ID, now.Add(r.claim.IdleTimeout)) {
		c.effects.Rearm = true
	}
}

// forget takes a runner out that was not handed out: it is not warm any more, and may come back.
func (c *Core) forget(e *env, r *runner) {
	if e != nil {
		e.warm.Remove(r.alloc.ID)
	}
	r.phase = gone
	delete(c.runners, r.alloc.ID)
}

// end takes the runner out; leases on it see Gone. One that was handed out is remembered, so that nothing brings it back.
func (c *Core) end(r *runner, reason error) {
	e := c.envs[r.env]
	if r.claim == nil {
		c.forget(e, r)
		return
	}
	delete(c.runners, r.alloc.ID)
	if e != nil {
		e.claimed--
	}
	r.phase, r.reason = gone, reason
	c.tombstones.add(r.alloc.ID, reason)
	c.deadlines.Clear(r.alloc.ID)
	c.effects.Ended = append(c.effects.Ended, Ended{AllocID: r.alloc.ID, Reason: reason})
}

// public is the runner as its users see it.
func (r *runner) public() execution.Runner {
	out := execution.Runner{
		ID: RunnerID(r.env, r.alloc.ID), AllocID: r.alloc.ID, NodeID: r.alloc.NodeID, State: execution.RunnerWarm,
	}
	out.Namespace, out.Environment = execution.SplitKey(r.env)
	if r.alloc.AllocatedResources != nil {
		for _, p := range r.alloc.AllocatedResources.Shared.Ports {
			out.Ports = append(out.Ports, environment.Address(r.of, r.alloc, p))
		}
	}
	if r.claim == nil {
		return out
	}
	out.ID, out.State = r.claim.RunnerID, execution.RunnerClaimed
	if r.busy > 0 {
		out.State = execution.RunnerBusy
	}
	if r.reason != nil {
		out.State = execution.RunnerDestroyed
	}
	out.ClaimedAt = unixNano(r.claim.ClaimedAt)
	out.IdleTimeout, out.Labels, out.Env, out.Limits = r.claim.IdleTimeout, r.claim.Labels, r.claim.Env, r.claim.Limits
	return out
}

func noEnvironment(key string) error {
	namespace, id := execution.SplitKey(key)
	if namespace != "" {
		return drover.Errorf(drover.NotFound, "environment %q not found in namespace %q", id, namespace)
	}
	return drover.Errorf(drover.NotFound, "environment %q not found", id)
}

// unixNano is the time of a stored number; 0 is the zero time, not 1970.
func unixNano(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
