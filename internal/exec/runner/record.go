package runner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/pool"
)

// The bounds of the claims in one entry.
const (
	maxBatch      = 1_000
	maxBatchBytes = 4 << 20 // of their variables and labels, about
)

// replay takes up what an earlier process handed out and did not record.
func (s *Service) replay() error {
	lines, err := s.journal.read()
	if err != nil {
		return err
	}
	snap := s.deps.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	settled := []string{}
	for _, line := range lines {
		switch {
		case line.Claim != nil:
			alloc := snap.Allocation(line.Claim.AllocID)
			if alloc == nil || alloc.Terminal() {
				settled = append(settled, line.Claim.AllocID)
				continue
			}
			s.replayClaimLocked(snap, alloc, *line.Claim)
		case line.Release != "":
			alloc := snap.Allocation(line.Release)
			if alloc == nil || alloc.Terminal() {
				settled = append(settled, line.Release)
				continue
			}
			settled = slices.DeleteFunc(settled, func(id string) bool { return id == line.Release })
			s.replayReleaseLocked(line.Release)
		}
	}
	return s.journal.ended(settled)
}

func (s *Service) replayClaimLocked(snap Snapshot, alloc *drover.Allocation, c AllocClaim) {
	s.claims = append(s.claims, c)
	signal(s.toWrite)
	id, ok := environment.IDOf(alloc.JobID)
	if !ok {
		return
	}
	s.readEnvLocked(snap, alloc.JobID)
	e := s.envs[id]
	if e == nil {
		return
	}
	switch r := s.runners[alloc.ID]; {
	case r == nil:
		s.addClaimedLocked(e, &runner{alloc: alloc, env: id, of: madeOf(snap, e, alloc)}, &c.Claim)
	case r.claim == nil:
		e.warm.Remove(alloc.ID)
		s.addClaimedLocked(e, r, &c.Claim)
	default: // the line of a later Extend
		r.claim = &c.Claim
		s.rearmLocked(r)
	}
}

func (s *Service) replayReleaseLocked(allocID string) {
	gone := drover.Errorf(drover.Gone, "%w", pool.ErrStopped)
	if r := s.runners[allocID]; r != nil {
		s.dropLocked(r, gone)
		return
	}
	s.tombs.add(allocID, gone)
	s.releases = append(s.releases, release{allocID, gone.Error()})
	signal(s.toWrite)
}

// record proposes claims and releases until ctx ends. What comes while an entry is on its way goes with the next.
func (s *Service) record(ctx context.Context) {
	wait := 20 * time.Millisecond
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.toWrite:
		}
		s.gather(ctx)
		for {
			if early := s.pace() - s.deps.Clock.Now().Sub(last); early > 0 && s.unrecorded() {
				clock.Sleep(ctx, s.deps.Clock, early)
			}
			last = s.deps.Clock.Now()
			b := s.takeBatch()
			s.compacted(s.journal.claimsRecorded(b.dropped))
			if len(b.claims)+len(b.releases)+len(b.demands) == 0 {
				break
			}
			if s.recordBatch(ctx, b) {
				wait = 20 * time.Millisecond
				continue
			}
			if !clock.Sleep(ctx, s.deps.Clock, wait) {
				return
			}
			wait = min(2*wait, 2*time.Second)
		}
	}
}

// The least time between two entries: under load they carry more each, as do those that follow from them, the plan and the
// nodes' reports. A claim after a pause waits for nothing.
const (
	urgentPace = 25 * time.Millisecond
	recordPace = 50 * time.Millisecond
)

func (s *Service) pace() time.Duration {
	if _, urgent := s.activity(); urgent {
		return urgentPace
	}
	return recordPace
}

// unrecorded reports whether there is something to record.
func (s *Service) unrecorded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.claims)+len(s.releases) > 0
}

// Recording starts the refilling, which costs more than what claimers do in the meantime, and many claims in one entry
// cost hardly more than one. So it waits for a lull while a large pool is drawn from, but not for long, and not when
// somebody waits or a small pool lacks runners.
const (
	lull       = 20 * time.Millisecond
	gatherFor  = 200 * time.Millisecond
	largePools = 10 // runners: what is claimed of smaller pools is replaced at once
)

// gather waits until recording is urgent or nothing happened for a lull.
func (s *Service) gather(ctx context.Context) {
	for left := gatherFor; left > 0; left -= lull {
		before, urgent := s.activity()
		if urgent || !clock.Sleep(ctx, s.deps.Clock, lull) {
			return
		}
		if now, _ := s.activity(); now == before {
			return
		}
	}
}

// activity counts what claimers do, and reports whether what is to be recorded must not wait.
func (s *Service) activity() (count uint64, urgent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawn := false
	if s.recorded != nil {
		return s.uses, true
	}
	for _, e := range s.envs {
		lacks := e.warm.Len() < e.PoolSize
		if e.waiters.Len() > 0 || e.wanted() != e.demand || lacks && e.PoolSize < largePools {
			return s.uses, true
		}
		drawn = drawn || lacks
	}
	return s.uses, !drawn || 4*len(s.claims) > maxBatch
}

// batch is what is recorded together. A claim that was released before it was recorded needs no record.
type batch struct {
	claims   []AllocClaim
	demands  []Demand
	releases []release
	dropped  []string // allocations
}

// takeBatch takes what is to be recorded next.
func (s *Service) takeBatch() (b batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := fitting(s.claims)
	for _, c := range s.claims[:n] {
		if s.tombs.has(c.AllocID) {
			b.dropped = append(b.dropped, c.AllocID)
		} else {
			b.claims = append(b.claims, c)
		}
	}
	s.claims = slices.Delete(s.claims, 0, n)
	if len(s.claims) == 0 { // with the last of them: a claim must not be recorded after the demand that it ends
		b.demands = s.demandsLocked(b.claims)
	}
	n = min(len(s.releases), maxBatch)
	b.releases = slices.Clone(s.releases[:n])
	s.releases = slices.Delete(s.releases, 0, n)
	return b
}

// fitting is how many of the claims go into one entry, at least one.
func fitting(claims []AllocClaim) int {
	bytes := 0
	for i, c := range claims {
		for _, m := range []map[string]string{c.Claim.Env, c.Claim.Labels} {
			for k, v := range m {
				bytes += len(k) + len(v)
			}
		}
		if i == maxBatch || i > 0 && bytes > maxBatchBytes {
			return i
		}
	}
	return len(claims)
}

// recordBatch reports false if something of it must be tried again; then that is in the queues again. Claims and releases
// of one batch are of different allocations: they are proposed beside each other, and share a write of the log.
func (s *Service) recordBatch(ctx context.Context, b batch) bool {
	var beside sync.WaitGroup
	released := true
	beside.Go(func() { released = s.recordReleases(ctx, b.releases) }) // ends with the log's answer or ctx
	claimed := s.recordClaims(ctx, b)
	beside.Wait()
	return claimed && released
}

func (s *Service) recordClaims(ctx context.Context, b batch) bool {
	if len(b.claims)+len(b.demands) == 0 {
		return true
	}
	results, err := s.deps.Intake.ClaimRunners(ctx, b.claims, b.demands)
	if err != nil {
		s.putBack(batch{claims: b.claims, demands: b.demands}, err)
		return false
	}
	s.settleClaims(b.claims, results)
	return true
}

func (s *Service) recordReleases(ctx context.Context, releases []release) bool {
	for _, reason := range reasonsOf(releases) {
		ids := allocsWith(releases, reason)
		if err := s.deps.Intake.ReleaseRunners(ctx, ids, reason); err != nil {
			s.putBack(batch{releases: releases}, err)
			return false
		}
		s.compacted(s.journal.ended(ids))
	}
	return true
}

// settleClaims ends the runners whose claim can never be recorded.
func (s *Service) settleClaims(claims []AllocClaim, results []error) {
	ids := make([]string, 0, len(claims))
	s.mu.Lock()
	for i, c := range claims {
		ids = append(ids, c.AllocID)
		if i >= len(results) || results[i] == nil {
			continue
		}
		if r := s.runners[c.AllocID]; r != nil {
			s.dropLocked(r, drover.Errorf(drover.Gone, "the runner ended while it was handed out: %w", results[i]))
		}
	}
	s.recordedLocked()
	s.mu.Unlock()
	s.compacted(s.journal.claimsRecorded(ids))
}

func (s *Service) compacted(err error) {
	if err != nil {
		s.deps.Log.Warn("compacting the claims journal", "error", err)
	}
}

func (s *Service) putBack(b batch, err error) {
	s.deps.Log.Warn("recording claims and releases, trying again", "claims", len(b.claims), "releases", len(b.releases), "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = append(b.claims, s.claims...)
	s.releases = append(b.releases, s.releases...)
	s.forgetDemandsLocked(b.demands)
	signal(s.toWrite)
}

func reasonsOf(releases []release) (reasons []string) {
	for _, r := range releases {
		if !slices.Contains(reasons, r.reason) {
			reasons = append(reasons, r.reason)
		}
	}
	return reasons
}

func allocsWith(releases []release, reason string) (ids []string) {
	for _, r := range releases {
		if r.reason == reason {
			ids = append(ids, r.allocID)
		}
	}
	return ids
}
