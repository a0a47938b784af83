package runner

import (
	"context"
	"time"
)

// withholdFor bounds how long Withhold waits for claims to be recorded; one entry of the log takes milliseconds.
const withholdFor = 2 * time.Second

// Withhold is called before allocations are stopped that seem to be warm runners. Those that are warm are handed out to
// nobody until giveBack is called; those that were handed out already stand in the state as claimed when it returns, so
// that the caller can spare them. Call giveBack when the state says what became of them.
func (s *Service) Withhold(ctx context.Context, allocIDs []string) (giveBack func()) {
	limit, cancel := s.deps.Clock.WithTimeout(ctx, withholdFor)
	defer cancel()
	_ = s.awaitSync(limit) // the journal may have claims; not read in time, they are dealt with as without this
	s.mu.Lock()
	for _, id := range allocIDs {
		s.held[id]++
	}
	s.mu.Unlock()
	for {
		changed := s.hold(allocIDs)
		if changed == nil {
			break
		}
		select {
		case <-changed:
			continue
		case <-limit.Done():
		}
		break
	}
	return func() { s.giveBack(allocIDs) }
}

// hold takes warm runners out of circulation. While some of the allocations are handed out and not recorded as that, it
// returns a channel that is closed when that may have changed.
func (s *Service) hold(allocIDs []string) (changed <-chan struct{}) {
	snap := s.deps.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	handed := false
	for _, id := range allocIDs {
		r := s.runners[id]
		switch {
		case r == nil:
		case r.claim == nil:
			if e := s.envs[r.env]; e != nil && e.warm.Remove(id) {
				delete(s.runners, id)
			} else {
				handed = true // to one who waited in line, who is about to take it
			}
		default:
			a := snap.Allocation(id)
			handed = handed || a != nil && a.Claim == nil && !a.Terminal()
		}
	}
	if !handed {
		return nil
	}
	if s.recorded == nil {
		s.recorded = make(chan struct{})
	}
	return s.recorded
}

// giveBack lets those that were not stopped be handed out again.
func (s *Service) giveBack(allocIDs []string) {
	snap := s.deps.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range allocIDs {
		if s.held[id]--; s.held[id] <= 0 {
			delete(s.held, id)
			s.observeLocked(snap, id)
		}
	}
}

// recordedLocked wakes those who wait for claims to be recorded.
func (s *Service) recordedLocked() {
	if s.recorded != nil {
		close(s.recorded)
		s.recorded = nil
	}
}
