package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Claim hands out a warm runner, once. With an empty pool it waits in line for up to r.Wait (0 =
// execution.DefaultClaimWait, less = not at all). A repetition gets the runner of the first claim. Errors: Invalid; NotFound:
// unknown environment; Exhausted: none came; Conflict: another request has its key; Unavailable; NotLeader: another server may answer.
func (s *Service) Claim(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error) {
	if err := validateClaim(r); err != nil {
		return execution.Runner{}, err
	}
	if err := s.awaitSync(ctx); err != nil {
		return execution.Runner{}, err
	}
	if ctx.Err() != nil {
		return execution.Runner{}, canceled(ctx)
	}
	r.Environment = execution.Key(r.Namespace, r.Environment)
	if r.Wait == 0 {
		r.Wait = execution.DefaultClaimWait
	}
	if r.Once.Key != "" {
		return s.claimOnce(ctx, r)
	}
	return s.claim(ctx, r)
}

// claim hands out a runner to who is there.
func (s *Service) claim(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error) {
	begun := s.deps.Clock.Now()
	seat, err := s.admit(execution.NamespaceOf(r.Environment))
	if err != nil {
		return execution.Runner{}, err
	}
	defer s.leaveSeat(seat)
	handout, err := s.handout(ctx, r)
	if err != nil {
		return execution.Runner{}, err
	}
	s.sit(seat, handout)
	got, err := s.answer(ctx, handout)
	if err == nil && r.Once.Key != "" && s.cfg.Lease != 0 {
		err = s.awaitRecorded(ctx, got)
	}
	if err == nil && ctx.Err() != nil { // nobody is there to use it, or to give it back
		_ = s.Release(context.WithoutCancel(ctx), got.ID) // it may have ended
		return execution.Runner{}, canceled(ctx)
	}
	if err == nil && s.deps.Claimed != nil {
		s.deps.Claimed(r.Environment, s.deps.Clock.Now().Sub(begun))
	}
	return got, err
}

// maxLabels bounds a claim's labels, in bytes: they stand in the journal, the log and the state.
const maxLabels = 16 << 10

// validateClaim checks the request by itself; whether the environment exists the core says. Errors: Invalid.
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

// handout gets a runner for the claim, at once or after a wait in line.
func (s *Service) handout(ctx context.Context, r execution.ClaimRequest) (*Handout, error) {
	var turn Turn
	var served <-chan struct{}
	var err error
	if !s.holds() {
		return nil, errOver()
	}
	s.tell(func(c *Core, now time.Time) {
		if s.ended { // else its waiter would stand in a line that nobody serves
			err = errOver()
			return
		}
		s.look(c, now, r.Environment)
		turn, err = c.Claim(now, r)
		served = s.queueLocked(turn.Waiter)
	})
	if err != nil || turn.Waiter == nil {
		return turn.Handout, err
	}
	timer := s.deps.Clock.NewTimer(min(r.Wait, s.cfg.MaxWait))
	defer timer.Stop()
	for err == nil && turn.Waiter != nil {
		select {
		case <-served:
		case <-timer.C():
			s.leave(turn.Waiter)
			return nil, s.exhausted(r)
		case <-s.over:
			s.leave(turn.Waiter)
			return nil, errOver()
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			s.leave(turn.Waiter)
			return nil, canceled(ctx)
		}
		s.tell(func(c *Core, now time.Time) {
			turn, err = c.Accept(now, turn.Waiter)
			served = s.queueLocked(turn.Waiter)
		})
	}
	return turn.Handout, err
}

// queueLocked returns a channel that is closed when the waiter is served; w may be nil. It is called by events.
func (s *Service) queueLocked(w *Waiter) <-chan struct{} {
	if w == nil {
		return nil
	}
	served := make(chan struct{})
	s.waiting[w] = served
	return served
}

// leave takes a waiter out of the line. A runner that was reserved for it in that moment goes to others.
func (s *Service) leave(w *Waiter) {
	s.tell(func(c *Core, _ time.Time) {
		delete(s.waiting, w)
		c.Leave(w)
	})
}

// answer writes the claim to the journal, and leaves it to be recorded. The claimer gets the runner only if it stands there.
func (s *Service) answer(ctx context.Context, h *Handout) (got execution.Runner, err error) {
	failed := s.journal.claim(h.Line)
	if failed == nil && (s.cfg.Sure || h.Line.Bounded) {
		failed = s.recordAtOnce(context.WithoutCancel(ctx), h.Line)
	}
	if failed == nil && !s.holds() { // this process may have stood still since
		failed = errOver()
	}
	s.tell(func(c *Core, _ time.Time) {
		if failed == nil && s.ended {
			failed = errOver()
		}
		got, err = c.Written(h, failed)
	})
	return got, err
}

// recordAtOnce proposes one claim. Later it is proposed again with others, which changes nothing.
func (s *Service) recordAtOnce(ctx context.Context, c AllocClaim) error {
	ctx, cancel := s.deps.Clock.WithTimeout(ctx, lastRecord)
	defer cancel()
	errs, err := s.deps.Intake.ClaimRunners(ctx, []AllocClaim{c}, nil)
	return errors.Join(append(errs, err)...)
}

// holds reports whether what is leased to this server is still its to hand out.
func (s *Service) holds() bool { return s.deps.Holds == nil || s.deps.Holds() }

// exhausted is the error of a claim that waited in vain. It says what keeps runners from coming, if that is known.
func (s *Service) exhausted(req execution.ClaimRequest) error {
	text := fmt.Sprintf("no runner of environment %q became ready within %s", req.Environment, req.Wait)
	var st execution.PoolStatus
	if tellError(s.deps.Snapshot(), req.Environment, &st); st.LastError != "" {
		text += ": " + st.LastError
	}
	return drover.Errorf(drover.Exhausted, "%s", text)
}

// canceled is the error of a claimer who waits no longer.
func canceled(ctx context.Context) error {
	return drover.Errorf(drover.Canceled, "waiting for a runner: %w", context.Cause(ctx))
}
