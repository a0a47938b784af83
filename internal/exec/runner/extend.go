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
func (s *Service) Extend(ctx context.Context, runnerID string, d time.Duration) (execution.Runner, error) {
	if d > environment.MaxIdleTimeout {
		return execution.Runner{}, drover.Errorf(drover.Invalid, "idleTimeout %d: want at most %d ns", d, environment.MaxIdleTimeout)
	}
	if err := s.awaitSync(ctx); err != nil {
		return execution.Runner{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.claimedLocked(runnerID)
	if err != nil {
		return execution.Runner{}, err
	}
	claim := *r.claim
	claim.IdleTimeout = max(d, 0)
	again := AllocClaim{AllocID: r.alloc.ID, Claim: claim}
	if err := s.journal.claim(again); err != nil { // with mu held: of two, the later one is also the later line
		return execution.Runner{}, drover.Errorf(drover.Unavailable, "writing the idle timeout down: %w", err)
	}
	r.claim = &claim
	s.claims = append(s.claims, again)
	signal(s.toWrite)
	s.rearmLocked(r)
	return r.public(), nil
}
