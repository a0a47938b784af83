package runner

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// record proposes claims and releases until ctx ends. What comes while an entry is on its way goes with the next.
func (s *Service) record(ctx context.Context) {
	wait := 20 * time.Millisecond
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.toWrite.C():
		}
		s.gather(ctx)
		for {
			if early := s.pace() - s.deps.Clock.Now().Sub(last); early > 0 && s.unrecorded() {
				clock.Sleep(ctx, s.deps.Clock, early)
			}
			last = s.deps.Clock.Now()
			b := s.batch()
			s.compacted(s.journal.claimsRecorded(b.Dropped))
			if b.Empty() {
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
	sharedPace = 100 * time.Millisecond // where several servers each store and apply what one of them does
)

// pace is the least time between this entry and the one before.
func (s *Service) pace() time.Duration {
	_, urgent := s.activity()
	switch {
	case urgent:
		return urgentPace
	case s.cfg.Lease != 0:
		return sharedPace
	}
	return recordPace
}

// unrecorded reports whether there is something to record.
func (s *Service) unrecorded() (any bool) {
	s.tell(func(c *Core, _ time.Time) {
		claims, releases := c.Unrecorded()
		any = claims+releases > 0
	})
	return any
}

// Recording starts the refilling, which costs more than what claimers do in the meantime, and many claims in one entry
// cost hardly more than one. So it waits for a lull while a large pool is drawn from, but not for long, and not when
// somebody waits or a small pool lacks runners.
const (
	lull      = 20 * time.Millisecond
	gatherFor = 200 * time.Millisecond
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

// activity tells how much has happened so far, as a number that only grows, and whether recording is urgent.
func (s *Service) activity() (count uint64, urgent bool) {
	s.tell(func(c *Core, _ time.Time) { count, urgent = c.Activity() })
	return count, urgent
}

// lastRecord bounds how long a service that ends tries to record what it did, and a claim that has to be recorded before it is answered.
const lastRecord = 2 * time.Second

// recordRest records what Run's loop left, as well as it can. What is left then stands in the journal, for Settle.
func (s *Service) recordRest(ctx context.Context) {
	ctx, cancel := s.deps.Clock.WithTimeout(context.WithoutCancel(ctx), lastRecord)
	defer cancel()
	for b := s.batch(); !b.Empty(); b = s.batch() {
		s.compacted(s.journal.claimsRecorded(b.Dropped))
		if !s.recordBatch(ctx, b) {
			return
		}
	}
}

// Recorded reports whether the state has all that was handed out, after Run has returned: then what it has as unclaimed can be
// leased to others.
func (s *Service) Recorded() (all bool) {
	s.tell(func(c *Core, _ time.Time) {
		claims, _ := c.Unrecorded()
		all = s.ended && claims == 0
	})
	return all
}

// batch takes what goes into the next entry out of the core; NotRecorded gives it back.
func (s *Service) batch() (b Batch) {
	s.tell(func(c *Core, _ time.Time) { b = c.Batch() })
	return b
}

// recordBatch reports false if something of it must be tried again; then the core has that again. Claims and releases are
// proposed beside each other, and share a write of the log.
func (s *Service) recordBatch(ctx context.Context, b Batch) bool {
	var beside sync.WaitGroup
	released := true
	beside.Go(func() { released = s.recordReleases(ctx, b.Releases) }) // ends with the log's answer or ctx
	claimed := s.recordClaims(ctx, b.Claims, b.Demands)
	beside.Wait()
	return claimed && released
}

// recordClaims proposes claims and demands in one entry. An error of the entry is tried again; an error of one
// claim goes to the core, which ends that runner. The journal forgets the claims of both kinds.
func (s *Service) recordClaims(ctx context.Context, claims []AllocClaim, demands []Demand) bool {
	if len(claims)+len(demands) == 0 {
		return true
	}
	results, err := s.deps.Intake.ClaimRunners(ctx, claims, demands)
	if err != nil {
		s.notRecorded(Batch{Claims: claims, Demands: demands}, err)
		return false
	}
	ids := make([]string, 0, len(claims))
	for i := range claims {
		ids = append(ids, claims[i].AllocID)
	}
	s.tell(func(c *Core, _ time.Time) { c.ClaimsRecorded(claims, results) })
	s.compacted(s.journal.claimsRecorded(ids))
	return true
}

// recordReleases proposes one entry for each reason. After an error the remaining ones go back to the core.
func (s *Service) recordReleases(ctx context.Context, all []Releases) bool {
	for i, of := range all {
		if err := s.deps.Intake.ReleaseRunners(ctx, of); err != nil {
			s.notRecorded(Batch{Releases: all[i:]}, err)
			return false
		}
		s.tell(func(c *Core, _ time.Time) { c.ReleasesRecorded(of.AllocIDs) })
		s.compacted(s.journal.ended(of.AllocIDs))
	}
	return true
}

// compacted logs that the journal could not be written anew. Nothing is lost by that: the old file has more lines
// than needed.
func (s *Service) compacted(err error) {
	if err != nil {
		s.deps.Log.Warn("compacting the claims journal", "error", err)
	}
}

// notRecorded gives a batch back to the core, for the next entry.
func (s *Service) notRecorded(b Batch, err error) {
	s.deps.Log.Warn("recording claims and releases, trying again", "claims", len(b.Claims), "releases", len(b.Releases), "error", err)
	s.tell(func(c *Core, _ time.Time) { c.NotRecorded(b) })
}
