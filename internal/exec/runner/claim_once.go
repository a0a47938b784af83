package runner

import (
	"context"
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/optional"
)

// claimOnce hands out a runner for a request with a key, unless one has it already. Of several servers the state machine decides: it
// refuses a second claim with the key, whose runner ends, and the first one's is found then.
func (s *Service) claimOnce(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error) {
	labels := maps.Clone(r.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[execution.OnceLabel] = r.Once.Label()
	r.Labels = labels
	found, err := s.firstOf(ctx, r)
	if found != nil || err != nil {
		return optional.Value(found), err
	}
	got, err := s.claim(ctx, r)
	if drover.CodeOf(err) == drover.Gone { // refused, or it ended
		if found, other := s.firstOf(ctx, r); found != nil || other != nil {
			return optional.Value(found), other
		}
	}
	return got, err
}

// firstOf returns the runner that was claimed with the request's key; nil without one. One that was released here, which the state does
// not know yet, is waited for: until then it refuses another. Errors: those of claimed; Unavailable; NotLeader; ctx's.
func (s *Service) firstOf(ctx context.Context, r execution.ClaimRequest) (*execution.Runner, error) {
	limit, cancel := s.deps.Clock.WithTimeout(ctx, recordWithin)
	defer cancel()
	for {
		found, ending, err := s.claimed(r)
		if ending == nil {
			return found, err
		}
		select {
		case <-ending:
		case <-s.over:
			return nil, errOver()
		case <-limit.Done():
			if ctx.Err() != nil {
				return nil, canceled(ctx)
			}
			return nil, drover.Errorf(drover.Unavailable, "the end of the runner that was claimed with this key cannot be recorded: ask again")
		}
	}
}

// claimed returns the runner of the environment that was claimed with the request's key, and has not ended, whichever server keeps it;
// nil without one. If the state has one that has ended here, ending is closed at the next change. Errors: NotFound: unknown
// environment; Conflict: it was another request.
func (s *Service) claimed(r execution.ClaimRequest) (found *execution.Runner, ending <-chan struct{}, err error) {
	snap, job := s.deps.Snapshot(), environment.JobOf(r.Environment)
	s.tell(func(c *Core, now time.Time) {
		s.look(c, now, r.Environment)
		for a := range snap.AllocationsByJob(job.Namespace, job.ID) {
			if a.Claim == nil || a.Terminal() || !r.Once.Of(a.Claim.Labels) {
				continue
			}
			c.observe(now, snap, a.ID) // no event told of it yet
			if c.tombstones.has(a.ID) {
				ending = s.watchLocked(r.Environment)
			}
		}
		found, err = c.once(r)
	})
	if found != nil || err != nil {
		ending = nil
	}
	return found, ending, err
}

// once finds the claimed runner that has the request's key.
func (c *Core) once(r execution.ClaimRequest) (*execution.Runner, error) {
	all, err := c.Runners(r.Environment)
	for i := range all {
		switch {
		case !r.Once.Of(all[i].Labels):
		case all[i].Labels[execution.OnceLabel] != r.Once.Label():
			return nil, execution.ErrOtherRequest()
		default:
			return &all[i], nil
		}
	}
	return nil, err
}

// awaitRecorded waits until the state has the claim: whoever leads next finds it by its labels then. Errors: Unavailable: it could not
// be recorded in time, or it is not known, and the runner is released; Gone.
func (s *Service) awaitRecorded(ctx context.Context, r execution.Runner) error {
	limit, cancel := s.deps.Clock.WithTimeout(ctx, recordWithin)
	defer cancel()
	for changed := s.hold([]string{r.AllocID}); changed != nil; changed = s.hold([]string{r.AllocID}) {
		select {
		case <-changed:
			continue
		case <-s.over:
		case <-limit.Done():
		}
		_ = s.Release(context.WithoutCancel(ctx), r.ID) // a service that has ended gives it to another, which ends it when it is idle
		return drover.Errorf(drover.Unavailable, "the claim of runner %s could not be recorded: ask again", r.ID)
	}
	_, err := s.Runner(ctx, r.ID)
	return err
}

// recordWithin is how long a claim waits to be recorded: as long as any request waits for a leader.
const recordWithin = 5 * time.Second
