package runner

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Release ends a claimed runner: it can't be used from now on, and its processes are killed. Errors: NotFound, Gone.
func (s *Service) Release(ctx context.Context, runnerID string) error {
	return s.release(ctx, runnerID, ErrStopped)
}

// ReleaseAfterOOM is Release, but says to those who still use it that its memory was not enough.
func (s *Service) ReleaseAfterOOM(ctx context.Context, runnerID string) error {
	return s.release(ctx, runnerID, ErrOOM)
}

// release ends the runner in the core first, so that nobody can use it any more, and then writes it down. A journal
// that cannot be written delays nothing: the state still learns of the release.
func (s *Service) release(ctx context.Context, runnerID string, why error) error {
	if err := s.awaitSync(ctx); err != nil {
		return err
	}
	var allocID string
	var err error
	s.tell(func(c *Core, _ time.Time) { allocID, err = c.Release(runnerID, drover.Errorf(drover.Gone, "%w", why)) })
	if err != nil {
		return s.unknown(runnerID, err)
	}
	s.writeReleases(true, allocID)
	return nil
}

// writeReleases writes releases, which claimers asked for or not, to the journal and leaves them to be recorded.
func (s *Service) writeReleases(asked bool, allocIDs ...string) {
	for _, id := range allocIDs {
		err := s.journal.release(id, asked)
		if err != nil {
			s.deps.Log.Warn("writing a release down", "allocation", id, "error", err)
		}
		s.tell(func(c *Core, _ time.Time) { c.Released(id, err == nil) })
	}
}

// holdAgain is when a server whose leases do not hold looks again.
const holdAgain = time.Second

// endIdle releases runners that nobody used for their idle timeout. One timer serves them all. While another server may have taken them
// over, and have them in use, nothing is idle.
func (s *Service) endIdle(ctx context.Context) {
	timer := s.deps.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.timerUp.C():
		case <-timer.C():
		}
		timer.Stop()
		if s.late() && !s.holds() {
			timer.Reset(holdAgain)
			continue
		}
		var due []string
		s.tell(func(c *Core, now time.Time) { due = c.Expire(now) })
		s.writeReleases(false, due...)
		s.tell(func(c *Core, now time.Time) {
			if next, ok := c.NextDeadline(); ok {
				timer.Reset(next.Sub(now))
			}
		})
	}
}

// late reports whether a runner was idle for its idle timeout.
func (s *Service) late() (late bool) {
	s.tell(func(c *Core, now time.Time) {
		next, ok := c.NextDeadline()
		late = ok && !now.Before(next)
	})
	return late
}

// unknown says of a runner that the core does not know whether it ended: the state remembers longer.
func (s *Service) unknown(runnerID string, err error) error {
	if drover.CodeOf(err) != drover.NotFound {
		return err
	}
	if envID, allocID, ok := allocOf(runnerID); ok {
		if a := s.deps.Snapshot().Allocation(allocID); a != nil && jobOf(a) == environment.JobOf(envID) && a.Terminal() {
			return drover.Errorf(drover.Gone, "runner %q ended", runnerID)
		}
	}
	return err
}
