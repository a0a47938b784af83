package nomadbackend

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/drover-project/drover"
)

// How long pools whose runners fail wait between rounds.
const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
	lookAgain    = 30 * time.Second // beside what events tell
)

// backoff is none for the first round of failures, then it doubles.
func backoff(failures, size int) time.Duration {
	rounds := failures / max(size, 1)
	if rounds == 0 {
		return 0
	}
	return min(firstBackoff<<min(rounds-1, 10), maxBackoff)
}

// keepPools starts and removes runners until ctx ends.
func (b *Backend) keepPools(ctx context.Context) {
	select {
	case <-b.synced:
	case <-ctx.Done():
		return
	}
	timer := b.deps.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.dirty.C():
		case <-timer.C():
		}
		again := b.keep(ctx)
		timer.Stop()
		timer.Reset(again)
	}
}

// keep brings all pools nearer to what they should be, and says when to look again.
func (b *Backend) keep(ctx context.Context) time.Duration {
	b.mu.Lock()
	var start, remove []*runnerJob
	again := lookAgain
	now := b.deps.Clock.Now()
	for id, e := range b.envs {
		place, surplus := b.compareLocked(id, e)
		remove = append(remove, surplus...)
		if wait := e.notBefore.Sub(now); place > 0 && wait > 0 {
			again = min(again, wait)
			continue
		}
		for range place {
			r := &runnerJob{id: runnerPrefix + b.deps.IDs.New(), env: id, generation: e.generation}
			b.runners[r.id] = r
			start = append(start, r)
		}
	}
	for _, r := range b.runners {
		if r.ending || b.envs[r.env] == nil {
			remove = append(remove, r)
		}
	}
	b.mu.Unlock()
	if !b.change(ctx, start, remove) {
		again = time.Second
	}
	return again
}

// compareLocked says how many runners to start, and which ones nobody needs. An environment that was replaced goes over
// by a quarter of its pool at a time; claimed runners stay.
func (b *Backend) compareLocked(id string, e *env) (place int, surplus []*runnerJob) {
	var old, ready, starting []*runnerJob
	claimed := 0
	for _, r := range b.runners {
		switch {
		case r.env != id || r.ending:
		case r.claim != nil:
			claimed++
		case r.generation != e.generation:
			old = append(old, r)
		case b.runningLocked(r):
			ready = append(ready, r)
		default:
			starting = append(starting, r)
		}
	}
	p := e.job.TaskGroups[0].Pool
	want := p.Size + p.Demand
	if p.MaxRunners > 0 {
		want = max(0, min(want, p.MaxRunners-claimed))
	}
	spare := min(max(len(ready)+len(old)-want, 0), len(old))
	surplus, old = old[:spare], old[spare:]
	have := append(starting, ready...)
	extra := max(0, len(have)-want)
	surplus = append(surplus, have[:extra]...)
	have = have[extra:]
	place = want - len(old) - len(have)
	if len(old) > 0 {
		place = max(place, min(want-len(have), max(1, want/4)-len(starting)))
	}
	if p.MaxRunners > 0 {
		place = min(place, p.MaxRunners-claimed-len(old)-len(have))
	}
	return max(place, 0), surplus
}

// runningLocked reports whether the runner's allocation runs, as far as the cluster's events have told.
func (b *Backend) runningLocked(r *runnerJob) bool {
	a := b.allocs[r.allocID]
	return a != nil && a.ClientStatus == drover.AllocClientRunning
}

// change starts and removes runners, several at once. It reports false if something is to be tried again.
func (b *Backend) change(ctx context.Context, start, remove []*runnerJob) bool {
	var calls errgroup.Group
	calls.SetLimit(atOnce)
	for _, r := range start {
		calls.Go(func() error { return b.start(ctx, r) }) // ends with its request
	}
	for _, r := range remove {
		calls.Go(func() error { return b.remove(ctx, r) }) // ends with its request
	}
	err := calls.Wait()
	if err != nil && ctx.Err() == nil {
		b.deps.Log.Warn("keeping pools on the Nomad cluster", "error", err)
	}
	return err == nil
}

// start registers one runner's job. keep has entered the runner before, so that it is not started twice. An error removes it
// again, unless an event told of the job before: then only the answer was lost. The index is the larger of the answer's and the
// event's, since the event may come first.
func (b *Backend) start(ctx context.Context, r *runnerJob) error {
	b.mu.Lock()
	e := b.envs[r.env]
	b.mu.Unlock()
	forget := func() (registered bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if r.index != 0 {
			return true
		}
		delete(b.runners, r.id)
		return false
	}
	if e == nil {
		forget()
		return nil
	}
	job, err := b.runnerJobOf(r, e.environment)
	if err != nil {
		forget()
		return err
	}
	res, _, err := b.client.Jobs().Register(job, b.write(ctx))
	if err != nil {
		if forget() {
			return nil
		}
		return b.reached(err) // if it was registered all the same, the event of it brings it back
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.job, r.index = job, max(r.index, res.JobModifyIndex)
	return nil
}
