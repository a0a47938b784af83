package runner

import (
	"context"
	"time"
)

// withholdFor bounds how long Withhold waits for claims to be recorded; one entry of the log takes milliseconds.
const withholdFor = 2 * time.Second

// Withhold is called before allocations are stopped that seem to be warm runners. Those that are warm are handed out
// to nobody until giveBack is called. When it returns, those that were handed out stand in the state as claimed, so
// that the caller can spare them. Call giveBack when the state says what became of them.
func (s *Service) Withhold(ctx context.Context, allocIDs []string) (giveBack func()) {
	limit, cancel := s.deps.Clock.WithTimeout(ctx, withholdFor)
	defer cancel()
	_ = s.awaitSync(limit) // the journal may have claims; not read in time, they are dealt with as without this
	s.tell(func(c *Core, _ time.Time) { c.Withhold(allocIDs) })
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

// Pending reports whether some of the allocations were handed out and are not recorded as that, after Withhold.
func (s *Service) Pending(allocIDs []string) bool { return s.hold(allocIDs) != nil }

// hold takes warm runners out of circulation. While some of the allocations are handed out and not recorded as that, it
// returns a channel that is closed when that may have changed.
func (s *Service) hold(allocIDs []string) (changed <-chan struct{}) {
	snap := s.deps.Snapshot()
	s.tell(func(c *Core, _ time.Time) {
		if c.Hold(snap, allocIDs) {
			changed = s.settled.C() // effects, which send, are performed after the event
		}
	})
	return changed
}

// giveBack lets those that were not stopped be handed out again.
func (s *Service) giveBack(allocIDs []string) {
	snap := s.deps.Snapshot()
	s.tell(func(c *Core, now time.Time) { c.GiveBack(now, snap, allocIDs) })
}
