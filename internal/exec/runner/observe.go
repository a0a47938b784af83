package runner

import (
	"context"
	"reflect"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/environment"
)

// follow keeps the memory equal to the state until ctx ends. It is level-triggered: an event only says which thing to
// look at again.
func (s *Service) follow(ctx context.Context) {
	for first := true; ctx.Err() == nil; first = false {
		snap := s.deps.Snapshot()
		index := snap.Index()
		s.readAll(snap)
		if first {
			close(s.synced)
		}
		sub, err := s.deps.Subscribe(index + 1)
		if err == nil {
			err = s.consume(ctx, sub)
			sub.Close()
		}
		if ctx.Err() == nil && drover.CodeOf(err) != drover.Gone {
			s.deps.Log.Warn("event stream ended, reading the state again", "error", err)
			clock.Sleep(ctx, s.deps.Clock, 100*time.Millisecond)
		}
	}
}

func (s *Service) consume(ctx context.Context, sub Subscription) error {
	for {
		events, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		snap := s.deps.Snapshot() // at least as new as the events
		s.mu.Lock()
		for _, e := range events.Events {
			switch e.Topic {
			case drover.TopicAllocation:
				s.observeLocked(snap, e.Key)
			case drover.TopicJob:
				s.readEnvLocked(snap, e.Key)
			}
		}
		s.mu.Unlock()
	}
}

// readAll compares everything with the snapshot: after a start, and after missed events.
func (s *Service) readAll(snap Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.envs {
		s.readEnvLocked(snap, environment.JobID(id))
	}
	for job := range snap.Jobs(environment.Namespace, environment.JobPrefix) {
		s.readEnvLocked(snap, job.ID)
		for alloc := range snap.AllocationsByJob(environment.Namespace, job.ID) { // of a known environment too: events were missed
			s.observeLocked(snap, alloc.ID)
		}
	}
	for id := range s.runners {
		s.observeLocked(snap, id)
	}
}

// readEnvLocked looks at an environment's job again, and at its allocations if it is new.
func (s *Service) readEnvLocked(snap Snapshot, jobID string) {
	id, ok := environment.IDOf(jobID)
	if !ok {
		return
	}
	job := snap.Job(environment.Namespace, jobID)
	if job == nil || job.Stop {
		s.forgetEnvLocked(id)
		return
	}
	known := s.envs[id]
	if known != nil && job.ModifyIndex <= known.version && job.ModifyIndex != 0 {
		return
	}
	read, err := environment.FromJob(job)
	if err != nil {
		return // somebody's job whose name looks like ours
	}
	if known != nil {
		changed := !reflect.DeepEqual(known.Environment, read) // and not its demand only
		known.Environment, known.version, known.demand = read, job.ModifyIndex, demandOf(job)
		if changed {
			s.remakeLocked(snap, known)
		}
		known.wake()
		s.demandLocked(known)
		return
	}
	s.envs[id] = &env{Environment: read, version: job.ModifyIndex, demand: demandOf(job)}
	s.demandLocked(s.envs[id])
	for alloc := range snap.AllocationsByJob(environment.Namespace, jobID) {
		s.observeLocked(snap, alloc.ID)
	}
}

// remakeLocked lets what is bound late hold for the runners that a changed environment keeps.
func (s *Service) remakeLocked(snap Snapshot, e *env) {
	for _, r := range s.runners {
		if r.env == e.ID {
			r.of = madeOf(snap, e, r.alloc)
		}
	}
}

func demandOf(job *drover.Job) int { return job.TaskGroups[0].Pool.Demand } // FromJob took it

// forgetEnvLocked ends what belongs to an environment that was deleted.
func (s *Service) forgetEnvLocked(id string) {
	e, ok := s.envs[id]
	if !ok {
		return
	}
	delete(s.envs, id)
	e.wake()
	for _, r := range s.runners {
		if r.env == id {
			s.endLocked(r, drover.Errorf(drover.Gone, "the environment was deleted"))
		}
	}
	for w, ok := e.waiters.Serve(); ok; w, ok = e.waiters.Serve() {
		close(w.served)
	}
}

// observeLocked looks at an allocation again.
func (s *Service) observeLocked(snap Snapshot, allocID string) {
	known := s.runners[allocID]
	alloc := snap.Allocation(allocID)
	if alloc == nil {
		if known != nil {
			s.endLocked(known, drover.Errorf(drover.Gone, "the allocation was removed"))
		}
		return
	}
	envID, ok := environment.IDOf(alloc.JobID)
	e := s.envs[envID]
	if !ok || e == nil || alloc.Namespace != environment.Namespace || s.tombs.has(allocID) {
		return
	}
	switch {
	case alloc.Terminal():
		e.wake()
		if known != nil {
			s.endLocked(known, endReason(alloc))
		}
	case alloc.Claim != nil:
		s.observeClaimedLocked(snap, e, known, alloc)
	case known != nil:
		known.alloc = alloc
		if known.claim == nil && !warm(alloc) { // it stopped answering; it may come back
			e.warm.Remove(allocID)
			delete(s.runners, allocID)
		}
	case warm(alloc) && s.held[allocID] == 0:
		s.addWarmLocked(e, &runner{alloc: alloc, env: envID, of: madeOf(snap, e, alloc)})
	}
}

func (s *Service) observeClaimedLocked(snap Snapshot, e *env, known *runner, alloc *drover.Allocation) {
	if known != nil && known.claim != nil {
		known.alloc = alloc
		return
	}
	if known != nil { // another server handed it out
		e.warm.Remove(alloc.ID)
	}
	claim := *alloc.Claim
	s.addClaimedLocked(e, &runner{alloc: alloc, env: e.ID, of: madeOf(snap, e, alloc)}, &claim)
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

func warm(alloc *drover.Allocation) bool {
	return alloc.ClientStatus == drover.AllocClientRunning && alloc.DesiredStatus == drover.AllocDesiredRun
}

// addWarmLocked gives the runner to whoever waits longest, else puts it on the stack.
func (s *Service) addWarmLocked(e *env, r *runner) {
	s.runners[r.alloc.ID] = r
	if w, ok := e.waiters.Serve(); ok {
		r.served, r.counts = true, e
		e.serving++
		w.served <- r
		return
	}
	e.warm.Push(r.alloc.ID)
	e.wake()
}

func (s *Service) addClaimedLocked(e *env, r *runner, claim *drover.Claim) {
	r.claim = claim
	r.life, r.end = context.WithCancel(context.Background()) //nolint:forbidigo // a lifetime, ended by endLocked
	s.runners[r.alloc.ID] = r
	e.claimed++
	s.rearmLocked(r)
}

// endLocked takes the runner out; leases on it see Gone. A claimed one is remembered, so that nothing brings it back.
func (s *Service) endLocked(r *runner, reason error) {
	delete(s.runners, r.alloc.ID)
	e := s.envs[r.env]
	if r.claim == nil {
		if e != nil {
			e.warm.Remove(r.alloc.ID)
		}
		return
	}
	if e != nil {
		e.claimed--
	}
	s.tombs.add(r.alloc.ID, reason)
	s.deadlines.Clear(r.alloc.ID)
	r.reason = reason
	r.end()
}
