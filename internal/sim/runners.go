package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/pool"
	"github.com/drover-project/drover/internal/exec/runner"
)

// This file is exec/runner's Service without goroutines and locks: claims are popped from the stack of warm runners,
// written to the journal, answered, and recorded behind that in batches.

type runners struct {
	s         *server
	envs      map[string]*warmEnv
	list      map[string]*warmRunner // by allocation
	tombs     map[string]bool
	deadlines pool.Deadlines
	claims    []runner.AllocClaim
	releases  []string
	toWrite   signal
	timerUp   signal
	news      []string // allocations and jobs to look at again
	newsUp    signal
	synced    bool
}

type warmEnv struct {
	execution.Environment
	version uint64
	warm    pool.Stack
}

type warmRunner struct {
	alloc *drover.Allocation
	env   string
	claim *drover.Claim
}

type journalLine struct {
	claim   *runner.AllocClaim
	release string
}

func newRunners(s *server) *runners {
	r := &runners{
		s: s, envs: map[string]*warmEnv{}, list: map[string]*warmRunner{}, tombs: map[string]bool{},
	}
	s.process.spawn("runners", func(p *proc) {
		r.replay()
		s.process.spawn("record", r.record)
		s.process.spawn("idle", r.endIdle)
		r.observe(p)
	})
	return r
}

// follow notes what an entry changed; the loop looks at it a little later, on a newer state.
func (r *runners) follow(ev drover.Events) {
	if r == nil {
		return // the log is being replayed
	}
	for _, e := range ev.Events {
		if e.Topic == drover.TopicAllocation || e.Topic == drover.TopicJob {
			r.news = append(r.news, e.Key)
		}
	}
	r.newsUp.raise()
}

func (r *runners) observe(p *proc) {
	for job := range r.s.store.Snapshot().Jobs(environment.Namespace, environment.JobPrefix) {
		r.readEnv(job.ID)
	}
	r.synced = true
	for {
		r.newsUp.wait(p, time.Hour)
		p.sleep(r.s.w.between(0, 5*time.Millisecond))
		news := r.news
		r.news = nil
		for _, key := range news {
			r.readEnv(key)
			r.look(key)
		}
	}
}

func (r *runners) readEnv(jobID string) {
	id, ok := environment.IDOf(jobID)
	if !ok {
		return
	}
	snap := r.s.store.Snapshot()
	job := snap.Job(environment.Namespace, jobID)
	if job == nil || job.Stop {
		r.forgetEnv(id)
		return
	}
	known := r.envs[id]
	if known != nil && job.ModifyIndex <= known.version {
		return
	}
	spec, err := environment.FromJob(job)
	if err != nil {
		r.s.w.breach("job %s cannot be read as an environment: %v", jobID, err)
	}
	if known != nil {
		known.Environment, known.version = spec, job.ModifyIndex
		return
	}
	r.envs[id] = &warmEnv{Environment: spec, version: job.ModifyIndex}
	for a := range snap.AllocationsByJob(environment.Namespace, jobID) {
		r.look(a.ID)
	}
}

func (r *runners) forgetEnv(id string) {
	if r.envs[id] == nil {
		return
	}
	delete(r.envs, id)
	for _, allocID := range slices.Sorted(maps.Keys(r.list)) {
		if x := r.list[allocID]; x.env == id {
			r.end(x)
		}
	}
}

// look is observeLocked.
func (r *runners) look(allocID string) {
	known := r.list[allocID]
	a := r.s.store.Snapshot().Allocation(allocID)
	if a == nil {
		if known != nil {
			r.end(known)
		}
		return
	}
	envID, ok := environment.IDOf(a.JobID)
	e := r.envs[envID]
	if !ok || e == nil || r.tombs[allocID] {
		return
	}
	warm := a.ClientStatus == drover.AllocClientRunning && a.DesiredStatus == drover.AllocDesiredRun
	switch {
	case a.Terminal():
		if known != nil {
			r.end(known)
		}
	case a.Claim != nil:
		if known != nil && known.claim != nil {
			known.alloc = a
			return
		}
		e.warm.Remove(allocID)
		claim := *a.Claim
		r.addClaimed(&warmRunner{alloc: a, env: envID}, &claim)
	case known != nil:
		known.alloc = a
		if known.claim == nil && !warm {
			e.warm.Remove(allocID)
			delete(r.list, allocID)
		}
	case warm:
		r.list[allocID] = &warmRunner{alloc: a, env: envID}
		e.warm.Push(allocID)
	}
}

func (r *runners) addClaimed(x *warmRunner, claim *drover.Claim) {
	x.claim = claim
	r.list[x.alloc.ID] = x
	if claim.IdleTimeout > 0 && r.deadlines.Set(x.alloc.ID, r.s.w.now.Add(claim.IdleTimeout)) {
		r.timerUp.raise()
	}
}

func (r *runners) end(x *warmRunner) {
	delete(r.list, x.alloc.ID)
	if x.claim == nil {
		if e := r.envs[x.env]; e != nil {
			e.warm.Remove(x.alloc.ID)
		}
		return
	}
	r.tombs[x.alloc.ID] = true
	r.deadlines.Clear(x.alloc.ID)
}

// claim hands out a warm runner.
func (r *runners) claim(envID string, idle time.Duration) (allocID string, err error) {
	e := r.envs[envID]
	if !r.synced || e == nil {
		return "", drover.Errorf(drover.NotFound, "environment %q not found", envID)
	}
	allocID, ok := e.warm.Pop()
	if !ok {
		return "", drover.Errorf(drover.Exhausted, "no runners available")
	}
	x := r.list[allocID]
	claim := drover.Claim{RunnerID: runner.RunnerID(envID, allocID), ClaimedAt: r.s.w.now.UnixNano(), IdleTimeout: idle}
	r.addClaimed(x, &claim)
	ac := runner.AllocClaim{AllocID: allocID, Claim: claim}
	r.s.w.disk.journal = append(r.s.w.disk.journal, journalLine{claim: &ac})
	r.claims = append(r.claims, ac)
	r.toWrite.raise()
	return allocID, nil
}

// release ends a claimed runner.
func (r *runners) release(allocID string) {
	if x := r.list[allocID]; x != nil && x.claim != nil {
		r.drop(x)
	}
}

func (r *runners) drop(x *warmRunner) {
	r.s.w.disk.journal = append(r.s.w.disk.journal, journalLine{release: x.alloc.ID})
	r.end(x)
	r.releases = append(r.releases, x.alloc.ID)
	r.toWrite.raise()
}

func (r *runners) endIdle(p *proc) {
	for {
		for _, id := range r.deadlines.Due(r.s.w.now) {
			r.drop(r.list[id])
		}
		wait := time.Hour
		if next, ok := r.deadlines.Next(); ok {
			wait = next.Sub(r.s.w.now)
		}
		r.timerUp.wait(p, wait)
	}
}

// replay takes up what an earlier process handed out and did not record.
func (r *runners) replay() {
	snap := r.s.store.Snapshot()
	for _, line := range slices.Clone(r.s.w.disk.journal) {
		switch {
		case line.claim != nil:
			a := snap.Allocation(line.claim.AllocID)
			if a == nil || a.Terminal() || a.Claim != nil {
				r.forget(line.claim.AllocID, true)
				continue
			}
			r.claims = append(r.claims, *line.claim)
			r.toWrite.raise()
			r.readEnv(a.JobID)
			id, _ := environment.IDOf(a.JobID)
			if e := r.envs[id]; e != nil {
				e.warm.Remove(a.ID)
				r.addClaimed(&warmRunner{alloc: a, env: id}, &line.claim.Claim)
			}
		default:
			a := snap.Allocation(line.release)
			if a == nil || a.Terminal() {
				r.forget(line.release, false)
				continue
			}
			if x := r.list[a.ID]; x != nil {
				r.end(x)
			}
			r.tombs[a.ID] = true
			r.releases = append(r.releases, a.ID)
			r.toWrite.raise()
		}
	}
}

// record proposes claims and releases.
func (r *runners) record(p *proc) {
	wait := 20 * time.Millisecond
	for {
		r.toWrite.wait(p, time.Hour)
		for len(r.claims)+len(r.releases) > 0 {
			claims, releases := r.claims, r.releases
			r.claims, r.releases = nil, nil
			if r.recordBatch(claims, releases) {
				wait = 20 * time.Millisecond
				continue
			}
			p.sleep(wait)
			wait = min(2*wait, 2*time.Second)
		}
	}
}

func (r *runners) recordBatch(claims []runner.AllocClaim, releases []string) bool {
	var batch []command.RunnerClaim
	for _, c := range claims {
		if r.tombs[c.AllocID] {
			r.forget(c.AllocID, true) // released before it was recorded
			continue
		}
		batch = append(batch, command.RunnerClaim{AllocID: c.AllocID, Claim: c.Claim})
	}
	in := r.s.intake
	if len(batch) > 0 {
		results, err := in.ClaimRunners(r.s.w.ctx, batch)
		if err != nil {
			r.claims, r.releases = append(claims, r.claims...), append(releases, r.releases...)
			return false
		}
		for _, res := range results {
			if res.Err != nil && drover.CodeOf(res.Err) == drover.Conflict && r.list[res.AllocID] != nil {
				r.drop(r.list[res.AllocID])
			} else if res.Err != nil && r.list[res.AllocID] != nil {
				r.drop(r.list[res.AllocID])
			}
			r.forget(res.AllocID, true)
		}
	}
	if len(releases) > 0 {
		if _, err := in.ReleaseRunners(r.s.w.ctx, releases, "released"); err != nil {
			r.releases = append(releases, r.releases...)
			return false
		}
		for _, id := range releases {
			r.forget(id, false)
		}
	}
	return true
}

// forget takes lines out of the journal: a recorded claim's, or all of an allocation that the state knows as stopped.
func (r *runners) forget(allocID string, claimOnly bool) {
	d := r.s.w.disk
	d.journal = slices.DeleteFunc(d.journal, func(l journalLine) bool {
		return l.claim != nil && l.claim.AllocID == allocID || !claimOnly && l.release == allocID
	})
}
