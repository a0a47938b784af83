package runner

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/pool"
)

// rearmLocked starts the idle timer anew, or stops it while the runner is in use.
func (s *Service) rearmLocked(r *runner) {
	if r.busy > 0 || r.claim.IdleTimeout == 0 {
		s.deadlines.Clear(r.alloc.ID)
		return
	}
	if s.deadlines.Set(r.alloc.ID, s.deps.Clock.Now().Add(r.claim.IdleTimeout)) {
		signal(s.timerUp)
	}
}

// endIdle releases runners that nobody used for their idle timeout. One timer serves them all.
func (s *Service) endIdle(ctx context.Context) {
	timer := s.deps.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.timerUp:
		case <-timer.C():
		}
		now := s.deps.Clock.Now()
		s.mu.Lock()
		for _, id := range s.deadlines.Due(now) {
			r := s.runners[id]
			s.writeRelease(id)
			s.dropLocked(r, drover.Errorf(drover.Gone, "%w", pool.ErrIdle))
		}
		next, ok := s.deadlines.Next()
		s.mu.Unlock()
		timer.Stop()
		if ok {
			timer.Reset(next.Sub(now))
		}
	}
}
