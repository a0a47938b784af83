package runner

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// follow keeps the core equal to the state until ctx ends.
func (s *Service) follow(ctx context.Context) {
	for first := true; ctx.Err() == nil; first = false {
		snap := s.deps.Snapshot()
		index := snap.Index()
		s.tell(func(c *Core, now time.Time) { c.ReadAll(now, snap) })
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

// consume applies events until the subscription ends, whose error it returns. The events only name what changed:
// the core reads it from the newest snapshot.
func (s *Service) consume(ctx context.Context, sub Subscription) error {
	for {
		events, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		snap := s.deps.Snapshot() // at least as new as the events
		s.tell(func(c *Core, now time.Time) { c.Observe(now, snap, events.Events) })
	}
}
