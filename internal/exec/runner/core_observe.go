package runner

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Observe tells what changed in the state. It is level-triggered: an event only says which thing to look at again in
// the snapshot, which is at least as new as the events.
func (c *Core) Observe(now time.Time, snap Snapshot, events []drover.Event) {
	for _, e := range events {
		switch e.Topic {
		case drover.TopicAllocation:
			c.observe(now, snap, e.Key)
		case drover.TopicJob:
			c.readEnv(now, snap, drover.NamespacedID{Namespace: e.Namespace, ID: e.Key})
		}
	}
}

// ReadAll compares everything with the snapshot: after a start, and after missed events.
func (c *Core) ReadAll(now time.Time, snap Snapshot) {
	for _, id := range slices.Sorted(maps.Keys(c.envs)) {
		c.envs[id].version = 0 // the state may have been put back to an older one
		c.readEnv(now, snap, environment.JobOf(id))
	}
	for job := range snap.Jobs("*", environment.JobPrefix) {
		c.readEnv(now, snap, job.Key())
		for alloc := range snap.AllocationsByJob(job.Namespace, job.ID) { // of a known environment too: events were missed
			c.observe(now, snap, alloc.ID)
		}
	}
	for _, known := range []map[string]*runner{c.runners, c.elsewhere} {
		for _, id := range slices.Sorted(maps.Keys(known)) {
			c.observe(now, snap, id)
		}
	}
}

// ReadClaimed looks at the claimed runners that are this server's and that it does not know yet.
func (c *Core) ReadClaimed(now time.Time, snap Snapshot) {
	for job := range snap.Jobs("*", environment.JobPrefix) {
		c.readEnv(now, snap, job.Key())
		for alloc := range snap.AllocationsByJob(job.Namespace, job.ID) {
			if alloc.Claim != nil && alloc.Lease == c.lease && c.runners[alloc.ID] == nil && !alloc.Terminal() {
				c.observe(now, snap, alloc.ID)
			}
		}
	}
}

// ReadEnvironment looks at an environment again.
func (c *Core) ReadEnvironment(now time.Time, snap Snapshot, id string) {
	c.readEnv(now, snap, environment.JobOf(id))
}

// Knows reports whether the environment was heard of. The event of its creation may be on its way: the snapshot tells.
func (c *Core) Knows(environmentID string) bool { return c.envs[environmentID] != nil }

// readEnv looks at an environment's job again, and at its allocations if it is new.
func (c *Core) readEnv(now time.Time, snap Snapshot, of drover.NamespacedID) {
	id, ok := environment.KeyOf(of)
	if !ok {
		return
	}
	job := snap.Job(of.Namespace, of.ID)
	if job == nil || job.Stop {
		c.forgetEnv(id)
		return
	}
	known := c.envs[id]
	if known != nil && job.ModifyIndex <= known.version && job.ModifyIndex != 0 {
		return
	}
	read, err := environment.FromJob(job)
	if err != nil {
		return // somebody's job whose name looks like ours
	}
	if known != nil {
		changed := !reflect.DeepEqual(known.Environment, read) // and not its demand only
		known.Environment, known.version = read, job.ModifyIndex
		if c.lease == 0 {
			known.demand = demandOf(job)
		}
		if changed {
			c.remake(snap, known)
		}
		c.changed(known)
		c.demanded(known)
		return
	}
	c.envs[id] = &env{Environment: read, version: job.ModifyIndex, raw: c.lease != 0}
	if c.lease == 0 {
		c.envs[id].demand = demandOf(job)
	}
	c.demanded(c.envs[id])
	for alloc := range snap.AllocationsByJob(of.Namespace, of.ID) {
		c.observe(now, snap, alloc.ID)
	}
}

// remake lets what is bound late hold for the runners that a changed environment keeps.
func (c *Core) remake(snap Snapshot, e *env) {
	for _, known := range []map[string]*runner{c.runners, c.elsewhere} {
		for _, r := range known {
			if r.env == e.Key() {
				r.of = madeOf(snap, e, r.alloc)
			}
		}
	}
}

func demandOf(job *drover.Job) int { return job.TaskGroups[0].Pool.Demand } // FromJob took it

// forgetEnv ends what belongs to an environment that was deleted. That its runners ended is recorded: if the environment is put again
// before they were stopped, the state would keep them, and nobody would use or end them any more.
func (c *Core) forgetEnv(id string) {
	e, ok := c.envs[id]
	if !ok {
		return
	}
	delete(c.envs, id)
	c.changed(e)
	for _, allocID := range slices.Sorted(maps.Keys(c.runners)) {
		switch r := c.runners[allocID]; {
		case r.env != id:
		case r.claim == nil:
			c.forget(e, r)
		default:
			c.drop(r, drover.Errorf(drover.Gone, "the environment was deleted"))
		}
	}
	maps.DeleteFunc(c.elsewhere, func(_ string, r *runner) bool { return r.env == id })
	for w, ok := e.waiters.Serve(); ok; w, ok = e.waiters.Serve() {
		c.effects.Served = append(c.effects.Served, w)
	}
}

// jobOf is the job of an allocation.
func jobOf(a *drover.Allocation) drover.NamespacedID {
	return drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
}

// observe looks at an allocation again.
func (c *Core) observe(now time.Time, snap Snapshot, allocID string) {
	known := c.runners[allocID]
	alloc := snap.Allocation(allocID)
	if alloc == nil {
		c.keepElsewhere(allocID, nil)
		if known != nil {
			c.end(known, drover.Errorf(drover.Gone, "the allocation was removed"))
		}
		return
	}
	envID, ok := environment.KeyOf(jobOf(alloc))
	e := c.envs[envID]
	if !ok || e == nil {
		return
	}
	if c.tombstones.has(allocID) {
		if alloc.Terminal() { // the state knows it, too: its key is free
			c.changed(e)
		}
		return
	}
	if alloc.Lease != c.lease && !alloc.Terminal() {
		c.observeElsewhere(snap, e, known, alloc)
		return
	}
	c.keepElsewhere(allocID, nil)
	switch {
	case alloc.Terminal():
		c.changed(e)
		if known != nil {
			c.end(known, endReason(alloc))
		}
	case alloc.Claim != nil:
		c.observeClaimed(now, snap, e, known, alloc)
	case known != nil:
		known.alloc = alloc
		if known.claim == nil && !ready(alloc) { // it stopped answering; it may come back
			c.forget(e, known)
		}
	case ready(alloc) && c.held[allocID] == 0:
		c.addWarm(e, &runner{alloc: alloc, env: envID, of: madeOf(snap, e, alloc)})
	}
}

// observeClaimed looks at an allocation that the state knows as claimed. A runner that this process handed out
// keeps its own claim, which may be newer than the state's. Otherwise another server, or an earlier process, has
// handed it out.
func (c *Core) observeClaimed(now time.Time, snap Snapshot, e *env, known *runner, alloc *drover.Allocation) {
	if known != nil && known.claim != nil {
		known.alloc = alloc
		return
	}
	if known != nil { // another server handed it out
		c.forget(e, known)
	}
	claim := *alloc.Claim
	c.addClaimed(now, e, &runner{alloc: alloc, env: e.Key(), of: madeOf(snap, e, alloc)}, claimed, &claim)
	c.adopt(claim.RunnerID)
}

// adopt notes a claimed runner that an earlier process, or another server, handed out.
func (c *Core) adopt(runnerID string) {
	c.adopted = append(c.adopted, runnerID)
	c.effects.Adopted = true
}

// Adopted takes what was adopted since the last call, by runner ids.
func (c *Core) Adopted() (runnerIDs []string) {
	runnerIDs, c.adopted = c.adopted, nil
	return runnerIDs
}

// madeOf returns the environment as the runner was made of it: a claimed one outlives its replacement.
func madeOf(snap Snapshot, e *env, alloc *drover.Allocation) execution.Environment {
	job := snap.Job(alloc.Namespace, alloc.JobID)
	if alloc.Job == nil || job == nil || sameRunner(alloc.Job, job) {
		return e.Environment
	}
	if made, err := environment.FromJob(alloc.Job); err == nil {
		return made
	}
	return e.Environment
}

// ready reports whether an unclaimed runner can be handed out.
func ready(alloc *drover.Allocation) bool {
	return alloc.ClientStatus == drover.AllocClientRunning && alloc.DesiredStatus == drover.AllocDesiredRun
}

// sameRunner reports whether runners of both jobs are made alike.
func sameRunner(of, job *drover.Job) bool {
	if of == nil || of.Version == job.Version || len(of.TaskGroups) != 1 {
		return true
	}
	a, b := of.TaskGroups[0], job.TaskGroups[0]
	return reflect.DeepEqual(a.Tasks, b.Tasks) && reflect.DeepEqual(a.Networks, b.Networks) &&
		reflect.DeepEqual(a.EphemeralDisk, b.EphemeralDisk)
}
