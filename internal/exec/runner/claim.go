package runner

import (
	"context"
	"fmt"
	"maps"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/pool"
)

// Claim hands out a warm runner, once. With an empty pool it waits in line for up to r.Wait (0 =
// execution.DefaultClaimWait, less = not at all). Errors: Invalid; NotFound:
// unknown environment; Exhausted: none came; Unavailable.
func (s *Service) Claim(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error) {
	if err := validateClaim(r); err != nil {
		return execution.Runner{}, err
	}
	if err := s.awaitSync(ctx); err != nil {
		return execution.Runner{}, err
	}
	if ctx.Err() != nil {
		return execution.Runner{}, left(ctx)
	}
	if r.Wait == 0 {
		r.Wait = execution.DefaultClaimWait
	}
	s.mu.Lock()
	e := s.envLocked(r.Environment)
	if e == nil {
		s.mu.Unlock()
		return execution.Runner{}, noEnvironment(r.Environment)
	}
	if err := environment.CheckLimits(r.Limits, e.Environment); err != nil {
		s.mu.Unlock()
		return execution.Runner{}, err
	}
	got, err := s.take(ctx, e, r)       // unlocks
	if err == nil && ctx.Err() != nil { // nobody is there to use it, or to give it back
		_ = s.Release(context.WithoutCancel(ctx), got.ID) // it may have ended
		return execution.Runner{}, left(ctx)
	}
	return got, err
}

// take hands out a warm runner, or waits for one. It is called with mu held and returns without.
func (s *Service) take(ctx context.Context, e *env, r execution.ClaimRequest) (execution.Runner, error) {
	id, ok := e.warm.Pop()
	if !ok {
		return s.wait(ctx, e, r)
	}
	got := s.runners[id]
	claim := s.handOutLocked(e, got, r)
	s.mu.Unlock()
	return s.enter(got, claim)
}

// maxLabels bounds a claim's labels, in bytes: they stand in the journal, the log and the state.
const maxLabels = 16 << 10

func validateClaim(r execution.ClaimRequest) error {
	if r.Environment == "" {
		return drover.Errorf(drover.Invalid, "environment: missing")
	}
	if r.IdleTimeout > environment.MaxIdleTimeout {
		return drover.Errorf(drover.Invalid, "idleTimeout %d: want at most %d ns", r.IdleTimeout, environment.MaxIdleTimeout)
	}
	size := 0
	for name, value := range r.Labels {
		size += len(name) + len(value)
	}
	if len(r.Labels) > 100 || size > maxLabels {
		return drover.Errorf(drover.Invalid, "labels: %d of %d bytes together, want at most 100 of %d", len(r.Labels), size, maxLabels)
	}
	if err := environment.ValidateLimits(r.Limits); err != nil {
		return err
	}
	return environment.ValidateEnv(r.Env)
}

// handOutLocked makes the warm runner the claimer's. From here on it is never warm again.
func (s *Service) handOutLocked(e *env, r *runner, req execution.ClaimRequest) AllocClaim {
	r.handed, r.counts = true, e
	s.uses++
	e.handing++
	idle := req.IdleTimeout
	switch {
	case idle == 0:
		idle = e.IdleTimeout
	case idle < 0:
		idle = 0
	}
	claim := drover.Claim{
		RunnerID: RunnerID(e.ID, r.alloc.ID), ClaimedAt: s.deps.Clock.Now().UnixNano(), IdleTimeout: idle,
		Labels: maps.Clone(req.Labels), Env: maps.Clone(req.Env),
	}
	if req.Limits != (drover.Limits{}) {
		claim.Limits = &req.Limits
	}
	s.addClaimedLocked(e, r, &claim)
	return AllocClaim{AllocID: r.alloc.ID, Claim: claim}
}

// enter writes the claim to the journal and leaves it to be recorded. The runner is answered only if it stands there.
func (s *Service) enter(r *runner, claim AllocClaim) (execution.Runner, error) {
	err := s.journal.claim(claim)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settleLocked(r) // together with what follows: a lower demand must not be recorded before the claim
	if err != nil {
		if r.reason == nil { // else it ended in between
			s.dropLocked(r, drover.Errorf(drover.Gone, "its claim could not be written"))
		}
		return execution.Runner{}, drover.Errorf(drover.Unavailable, "writing the claim down: %w", err)
	}
	s.claims = append(s.claims, claim)
	signal(s.toWrite)
	if r.reason != nil {
		return execution.Runner{}, r.reason
	}
	return r.public(), nil
}

// wait queues for a runner that becomes warm. It is called with mu held and returns without.
func (s *Service) wait(ctx context.Context, e *env, req execution.ClaimRequest) (execution.Runner, error) {
	if req.Wait < 0 {
		s.mu.Unlock()
		return execution.Runner{}, drover.Errorf(drover.Exhausted, "no runners available for environment %q", e.ID)
	}
	if e.waiters.Len() >= s.cfg.MaxWaiting {
		s.mu.Unlock()
		return execution.Runner{}, drover.Errorf(drover.Exhausted, "no runners available for environment %q, and %d claims wait already", e.ID, s.cfg.MaxWaiting)
	}
	timer := s.deps.Clock.NewTimer(min(req.Wait, s.cfg.MaxWait))
	defer timer.Stop()
	w := &waiter{served: make(chan *runner, 1)}
	place := e.waiters.Join(w)
	s.demandLocked(e)
	s.mu.Unlock()

	var late error
	select {
	case r, ok := <-w.served:
		if !ok {
			return execution.Runner{}, noEnvironment(req.Environment)
		}
		return s.accept(ctx, e, r, req)
	case <-timer.C():
		late = s.noneCame(req)
	case <-ctx.Done():
		late = left(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.waiters.Leave(place)
	s.demandLocked(e)
	select {
	case r, ok := <-w.served: // served at the same moment: somebody else may have it
		if ok {
			s.giveUpLocked(e, r)
		}
	default:
	}
	return execution.Runner{}, late
}

// giveUpLocked lets others have a runner that a waiter was served and does not take.
func (s *Service) giveUpLocked(e *env, r *runner) {
	s.settleLocked(r)
	if s.runners[r.alloc.ID] == r && r.claim == nil {
		s.addWarmLocked(e, r)
	}
}

// noneCame says what keeps runners from coming, if that is known.
func (s *Service) noneCame(req execution.ClaimRequest) error {
	text := fmt.Sprintf("no runner of environment %q became ready within %s", req.Environment, req.Wait)
	if why := lastError(s.deps.Snapshot(), req.Environment); why != "" {
		text += ": " + why
	}
	return drover.Errorf(drover.Exhausted, "%s", text)
}

func left(ctx context.Context) error {
	return drover.Errorf(drover.Canceled, "waiting for a runner: %w", context.Cause(ctx))
}

// accept takes the runner that a waiter was served, unless it ended in between: then it takes another, which may have
// become warm while nobody waited in line, or waits on.
func (s *Service) accept(ctx context.Context, e *env, r *runner, req execution.ClaimRequest) (execution.Runner, error) {
	s.mu.Lock()
	if s.runners[r.alloc.ID] == r && r.claim == nil && ctx.Err() == nil {
		claim := s.handOutLocked(e, r, req)
		s.mu.Unlock()
		return s.enter(r, claim)
	}
	s.giveUpLocked(e, r)
	if s.envs[req.Environment] != e {
		s.mu.Unlock()
		return execution.Runner{}, noEnvironment(req.Environment)
	}
	if ctx.Err() != nil {
		s.mu.Unlock()
		return execution.Runner{}, left(ctx)
	}
	return s.take(ctx, e, req)
}

// Release ends a claimed runner: it can't be used from now on, and its processes are killed. Errors: NotFound, Gone.
func (s *Service) Release(ctx context.Context, runnerID string) error {
	return s.release(ctx, runnerID, pool.ErrStopped)
}

// ReleaseAfterOOM is Release, but says to those who still use it that its memory was not enough.
func (s *Service) ReleaseAfterOOM(ctx context.Context, runnerID string) error {
	return s.release(ctx, runnerID, pool.ErrOOM)
}

func (s *Service) release(ctx context.Context, runnerID string, why error) error {
	if err := s.awaitSync(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	r, err := s.claimedLocked(runnerID)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	_, allocID, _ := allocOf(runnerID)
	s.writeRelease(allocID) // before it is dropped: then the journal may forget its claim
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.reason == nil {
		s.dropLocked(r, drover.Errorf(drover.Gone, "%w", why))
	}
	return nil
}

// writeRelease writes the release to the journal. If that fails, it is released all the same, only not by the next
// process if this one is killed right now.
func (s *Service) writeRelease(allocID string) {
	if err := s.journal.release(allocID); err != nil {
		s.deps.Log.Warn("writing a release down", "allocation", allocID, "error", err)
	}
}

// dropLocked ends a runner here and has its allocation stopped.
func (s *Service) dropLocked(r *runner, reason error) {
	s.endLocked(r, reason)
	s.recordedLocked()
	s.uses++
	s.releases = append(s.releases, release{r.alloc.ID, reason.Error()})
	signal(s.toWrite)
}

// claimedLocked finds a claimed runner. Errors: Gone, NotFound.
func (s *Service) claimedLocked(runnerID string) (*runner, error) {
	envID, allocID, ok := allocOf(runnerID)
	if ok {
		if r := s.runners[allocID]; r != nil && r.claim != nil && r.env == envID {
			return r, nil
		}
		if reason := s.tombs.reasons[allocID]; reason != nil {
			return nil, reason
		}
		if a := s.deps.Snapshot().Allocation(allocID); a != nil && a.JobID == environment.JobID(envID) && a.Terminal() {
			return nil, drover.Errorf(drover.Gone, "runner %q ended", runnerID)
		}
	}
	return nil, drover.Errorf(drover.NotFound, "runner %q not found", runnerID)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
