package runner

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Extend sets the runner's idle timeout from now on; d <= 0 means none. It is written down and recorded as the claim
// was, so that it holds after a restart too. Errors: Invalid, NotFound, Gone, Unavailable.
func (s *Service) Extend(ctx context.Context, runnerID string, d time.Duration) (got execution.Runner, err error) {
	if d > environment.MaxIdleTimeout {
		return got, drover.Errorf(drover.Invalid, "idleTimeout %d: want at most %d ns", d, environment.MaxIdleTimeout)
	}
	if err := s.awaitSync(ctx); err != nil {
		return got, err
	}
	s.extending.Lock()
	defer s.extending.Unlock()
	var line AllocClaim
	s.tell(func(c *Core, _ time.Time) { line, err = c.Extension(runnerID, d) })
	if err != nil {
		return got, s.unknown(runnerID, err)
	}
	if err := s.journal.claim(line); err != nil {
		return got, drover.Errorf(drover.Unavailable, "writing the idle timeout down: %w", err)
	}
	s.tell(func(c *Core, now time.Time) { got, err = c.Extended(now, line) })
	return got, err
}
