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
	s.writeReleases(allocID)
	return nil
}

// writeReleases writes releases to the journal and leaves them to be recorded.
func (s *Service) writeReleases(allocIDs ...string) {
	for _, id := range allocIDs {
		err := s.journal.release(id)
		if err != nil {
			s.deps.Log.Warn("writing a release down", "allocation", id, "error", err)
		}
		s.tell(func(c *Core, _ time.Time) { c.Released(id, err == nil) })
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
		case <-s.timerUp.C():
		case <-timer.C():
		}
		var due []string
		s.tell(func(c *Core, now time.Time) { due = c.Expire(now) })
		s.writeReleases(due...)
		timer.Stop()
		s.tell(func(c *Core, now time.Time) {
			if next, ok := c.NextDeadline(); ok {
				timer.Reset(next.Sub(now))
			}
		})
	}
}

// unknown says of a runner that the core does not know whether it ended: the state remembers longer.
func (s *Service) unknown(runnerID string, err error) error {
	if drover.CodeOf(err) != drover.NotFound {
		return err
	}
	if envID, allocID, ok := allocOf(runnerID); ok {
		if a := s.deps.Snapshot().Allocation(allocID); a != nil && a.JobID == environment.JobID(envID) && a.Terminal() {
			return drover.Errorf(drover.Gone, "runner %q ended", runnerID)
		}
	}
	return err
}
