package nomadbackend

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/environment"
)

// follow keeps the memory equal to the cluster until ctx ends.
func (b *Backend) follow(ctx context.Context) {
	opened := sync.OnceFunc(func() { close(b.synced) })
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		err := b.followOnce(ctx, func() {
			wait = 50 * time.Millisecond
			opened()
		})
		b.mu.Lock()
		b.connected = false
		b.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		b.deps.Log.Warn("the connection to the Nomad cluster is down", "address", b.cfg.Address, "error", err)
		clock.Sleep(ctx, b.deps.Clock, wait)
	}
}

// followOnce reads everything and then what changes, until the stream breaks.
func (b *Backend) followOnce(ctx context.Context, loaded func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	index, err := b.indexNow(ctx)
	if err != nil {
		return err
	}
	// The stream comes first: what changes while everything is read is told by it, too.
	stream, err := b.client.EventStream().Stream(ctx, map[api.Topic][]string{
		api.TopicJob: {"*"}, api.TopicAllocation: {"*"},
	}, index+1, b.query(ctx))
	if err != nil {
		return err
	}
	if err := b.load(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	b.connected = true
	b.mu.Unlock()
	loaded()
	b.dirty.Send()
	for events := range stream {
		if events.Err != nil {
			return events.Err
		}
		for i := range events.Events {
			b.take(&events.Events[i])
		}
	}
	return context.Cause(ctx)
}

// indexNow returns the index of the cluster's jobs.
func (b *Backend) indexNow(ctx context.Context) (uint64, error) {
	q := b.query(ctx)
	q.PerPage = 1
	_, meta, err := b.client.Jobs().List(q)
	if err != nil {
		return 0, err
	}
	return meta.LastIndex, nil
}

// load lists environments, runners and their allocations.
func (b *Backend) load(ctx context.Context) error {
	stubs, _, err := b.client.Jobs().List(&api.QueryOptions{Namespace: b.cfg.Namespace, Prefix: "drover-"})
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for _, s := range stubs {
		if !ours(s.ID) {
			continue
		}
		job, _, err := b.client.Jobs().Info(s.ID, b.query(ctx))
		if notFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		here[s.ID] = true
		b.takeJob(job)
	}
	q := b.query(ctx)
	q.Params = map[string]string{"resources": "true"}
	allocs, _, err := b.client.Allocations().List(q)
	if err != nil {
		return err
	}
	for _, a := range allocs {
		b.takeAlloc(a.JobID, a)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, r := range b.runners {
		if !here[id] && r.index != 0 {
			b.goneLocked(r)
		}
	}
	for id := range b.envs {
		if !here[envPrefix+id] {
			b.forgetEnvLocked(id)
		}
	}
	return nil
}

// ours reports whether a job belongs to this backend. Everything else on the cluster is ignored, and never changed.
func ours(jobID string) bool {
	return strings.HasPrefix(jobID, envPrefix) || strings.HasPrefix(jobID, runnerPrefix)
}

// take applies one event of the cluster to the memory. Events may come twice or describe what load has read
// already: each step below compares indexes or values.
func (b *Backend) take(e *api.Event) {
	switch e.Topic {
	case api.TopicAllocation:
		var a struct{ Allocation *api.Allocation }
		if convert(e.Payload, &a) == nil && a.Allocation != nil {
			b.takeAlloc(a.Allocation.JobID, a.Allocation)
		}
	case api.TopicJob:
		if !ours(e.Key) {
			return
		}
		var j struct{ Job *api.Job }
		if e.Type == "JobDeregistered" || convert(e.Payload, &j) != nil || j.Job == nil {
			b.takeGone(e.Key)
			return
		}
		b.takeJob(j.Job)
	default: // we keep nothing of the others
	}
}

// takeGone forgets an environment or a runner whose job is no longer on the cluster.
func (b *Backend) takeGone(jobID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runners[jobID]; r != nil {
		b.goneLocked(r)
	}
	if id, ok := strings.CutPrefix(jobID, envPrefix); ok {
		b.forgetEnvLocked(id)
	}
}

// takeJob takes an environment or a runner from its job; a stopped job is ignored, its end comes as another event.
// An environment is only replaced if it differs, so that its own registration does not count as a change. A claim
// that is known here is kept: the cluster may not have it yet.
func (b *Backend) takeJob(job *api.Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if job.ID == nil || job.Stop != nil && *job.Stop {
		return
	}
	if e, ok := readEnvironment(job); ok {
		known := b.envs[e.ID]
		if known == nil || !reflect.DeepEqual(environment.Canonicalize(known.environment), environment.Canonicalize(e)) {
			if err := b.setEnvLocked(e); err != nil {
				b.deps.Log.Warn("reading an environment of the Nomad cluster", "environment", e.ID, "error", err)
			}
		}
		return
	}
	r, ok := readRunner(job)
	if !ok {
		return
	}
	known := b.runners[r.id]
	if known == nil {
		b.runners[r.id] = r
		b.dirty.Send()
	} else if r.index > known.index {
		known.job, known.index = r.job, r.index
		if known.claim == nil {
			known.claim, known.recorded = r.claim, r.recorded
		}
	}
}

// takeAlloc takes an allocation, a value of either of Nomad's two types for it. Those of unknown jobs and of the
// note's group are ignored.
func (b *Backend) takeAlloc(jobID string, a any) {
	if !strings.HasPrefix(jobID, runnerPrefix) {
		return
	}
	out := &drover.Allocation{}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runners[jobID]
	if r == nil || convert(a, out) != nil || out.TaskGroup == noteGroup {
		return
	}
	b.setAllocLocked(r, out)
}
