package nomadbackend

import (
	"context"
	"iter"
	"maps"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
)

// Bounds of what is remembered.
const (
	maxEvents = 4_096
	maxEnded  = 500
)

// view is a consistent copy.
type view struct {
	index  uint64
	jobs   map[string]*drover.Job
	allocs map[string]*drover.Allocation
}

// Snapshot serves runner.Deps.
func (b *Backend) Snapshot() runner.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := view{b.index, make(map[string]*drover.Job, len(b.envs)), maps.Clone(b.allocs)}
	for _, e := range b.envs {
		v.jobs[e.job.ID] = e.job
	}
	return v
}

// Index implements runner.Snapshot.
func (v view) Index() uint64 { return v.index }

// Job implements runner.Snapshot.
func (v view) Job(_, id string) *drover.Job { return v.jobs[id] }

// Jobs implements runner.Snapshot.
func (v view) Jobs(_, prefix string) iter.Seq[*drover.Job] {
	return func(yield func(*drover.Job) bool) {
		for id, j := range v.jobs {
			if strings.HasPrefix(id, prefix) && !yield(j) {
				return
			}
		}
	}
}

// Allocation implements runner.Snapshot.
func (v view) Allocation(id string) *drover.Allocation { return v.allocs[id] }

// AllocationsByJob implements runner.Snapshot.
func (v view) AllocationsByJob(_, id string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, a := range v.allocs {
			if a.JobID == id && !yield(a) {
				return
			}
		}
	}
}

// EvaluationsByJob implements runner.Snapshot: Nomad's are not followed.
func (v view) EvaluationsByJob(string, string) iter.Seq[*drover.Evaluation] {
	return func(func(*drover.Evaluation) bool) {}
}

// subscription reads the events that are kept; next is the index of its next event.
type subscription struct {
	b    *Backend
	next uint64
}

// Subscribe serves runner.Deps. Errors: Gone.
func (b *Backend) Subscribe(index uint64) (runner.Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if index+uint64(len(b.events)) <= b.index {
		return nil, drover.Errorf(drover.Gone, "events from index %d on are not kept", index)
	}
	return &subscription{b, index}, nil
}

// Next implements runner.Subscription.
func (s *subscription) Next(ctx context.Context) (drover.Events, error) {
	for {
		s.b.mu.Lock()
		behind := s.b.index - (s.next - 1)
		changed := s.b.changed.C()
		if behind > uint64(len(s.b.events)) && s.next <= s.b.index {
			s.b.mu.Unlock()
			return drover.Events{}, drover.Errorf(drover.Gone, "too slow for the events")
		}
		if s.next <= s.b.index {
			e := s.b.events[uint64(len(s.b.events))-behind]
			s.next++
			s.b.mu.Unlock()
			return e, nil
		}
		s.b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return drover.Events{}, context.Cause(ctx)
		}
	}
}

// Close implements runner.Subscription.
func (*subscription) Close() {}

// emitLocked tells subscribers to look at a thing again.
func (b *Backend) emitLocked(topic, key string) {
	b.index++
	if len(b.events) >= 2*maxEvents {
		b.events = append([]drover.Events(nil), b.events[maxEvents:]...)
	}
	b.events = append(b.events, drover.Events{Index: b.index, Events: []drover.Event{{
		Topic: topic, Namespace: drover.DefaultNamespace, Key: key, Index: b.index,
	}}})
	b.changed.Send()
}

// setAllocLocked takes an allocation of a runner's job as the cluster tells it.
func (b *Backend) setAllocLocked(r *runnerJob, a *drover.Allocation) {
	old := b.allocs[a.ID]
	if old != nil && old.ModifyIndex > a.ModifyIndex {
		return
	}
	a.JobID, a.Namespace, a.Claim, a.Job = environment.JobOf(r.env).ID, drover.DefaultNamespace, r.claim, nil
	if e := b.envs[r.env]; e != nil && r.generation == e.generation {
		a.Job = e.job
	} else {
		a.Job = older(a.JobID)
	}
	b.allocs[a.ID] = a
	r.allocID = a.ID
	if a.Terminal() && (old == nil || !old.Terminal()) {
		b.endedLocked(r, a)
	}
	if e := b.envs[r.env]; e != nil && a.ClientStatus == drover.AllocClientRunning {
		e.failures = 0
	}
	b.emitLocked(drover.TopicAllocation, a.ID)
	b.dirty.Send()
}

// older stands for a specification that is no more.
func older(jobID string) *drover.Job {
	return &drover.Job{ID: jobID, Version: 1, TaskGroups: []*drover.TaskGroup{{}}}
}

// outdateLocked marks the allocations of an environment that was replaced.
func (b *Backend) outdateLocked(e *env) {
	for _, r := range b.runners {
		if a := b.allocs[r.allocID]; a != nil && r.env == e.environment.ID && r.generation != e.generation {
			marked := *a
			marked.Job = older(a.JobID)
			b.allocs[a.ID] = &marked
			b.emitLocked(drover.TopicAllocation, a.ID)
		}
	}
}

// endedLocked notes the end of an allocation: keep then removes its job. The last maxEnded allocations stay
// readable, so that the reason of an end can still be found. Only a failure before a claim delays the pool: what a
// claimed runner did is its user's matter.
func (b *Backend) endedLocked(r *runnerJob, a *drover.Allocation) {
	r.ending = true
	b.ended = append(b.ended, a.ID)
	if len(b.ended) > maxEnded {
		delete(b.allocs, b.ended[0])
		b.ended = b.ended[1:]
	}
	e := b.envs[r.env]
	if e != nil && a.ClientStatus == drover.AllocClientFailed && r.claim == nil {
		e.failures++
		e.notBefore = b.deps.Clock.Now().Add(backoff(e.failures, e.environment.PoolSize))
	}
}

// goneLocked takes a runner whose job was removed out.
func (b *Backend) goneLocked(r *runnerJob) {
	delete(b.runners, r.id)
	if a := b.allocs[r.allocID]; a != nil && !a.Terminal() {
		stopped := *a
		stopped.DesiredStatus = drover.AllocDesiredStop
		b.allocs[a.ID] = &stopped
		b.endedLocked(r, &stopped)
		b.emitLocked(drover.TopicAllocation, a.ID)
	}
	b.dirty.Send()
}
