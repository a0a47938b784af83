package runner

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// AwaitPool waits until the environment's pool is full of runners of its present specification, one of them failed,
// or the time is over. It returns how the pool stands and whether it is full. Errors: NotFound; ctx's.
func (s *Service) AwaitPool(ctx context.Context, environmentID string, wait time.Duration) (st execution.PoolStatus, full bool, err error) {
	full, err = s.await(ctx, environmentID, wait, func(c census) bool { return c.old == 0 && c.current >= c.size })
	if err != nil {
		return st, false, err
	}
	st, err = s.PoolStatus(ctx, environmentID)
	return st, full, err
}

// AwaitRollout waits until no runner of an older specification is warm, so that claims get new ones, until a new one
// failed, or the time is over. Errors: as AwaitPool.
func (s *Service) AwaitRollout(ctx context.Context, environmentID string, wait time.Duration) error {
	_, err := s.await(ctx, environmentID, wait, func(c census) bool { return c.old == 0 })
	return err
}

// await waits until enough says so of the pool's runners; false if a runner failed or the time is over. The watch
// begins before each count, so that no change is missed. When the time is over it counts a last time.
func (s *Service) await(ctx context.Context, environmentID string, wait time.Duration, enough func(census) bool) (bool, error) {
	if err := s.awaitSync(ctx); err != nil {
		return false, err
	}
	timer := s.deps.Clock.NewTimer(max(wait, 0))
	defer timer.Stop()
	for late := false; ; {
		now, changed, err := s.count(environmentID)
		if err != nil || enough(now) {
			return err == nil, err
		}
		if late || s.failing(environmentID) {
			return false, nil
		}
		select {
		case <-changed:
		case <-timer.C():
			late = true
		case <-ctx.Done():
			return false, drover.Errorf(drover.Canceled, "waiting for a pool: %w", context.Cause(ctx))
		}
	}
}

// count counts an environment's warm runners; changed is closed at the next change of its pool.
func (s *Service) count(environmentID string) (now census, changed <-chan struct{}, err error) {
	at := environment.JobOf(environmentID)
	job := s.deps.Snapshot().Job(at.Namespace, at.ID)
	s.tell(func(c *Core, t time.Time) {
		s.look(c, t, environmentID)
		if now, err = c.census(environmentID, job); err != nil {
			return
		}
		changed = s.watchLocked(environmentID)
	})
	return now, changed, err
}

// watchLocked returns a channel that is closed at the next change of the environment's pool. It is called by events.
func (s *Service) watchLocked(environmentID string) <-chan struct{} {
	if s.watched[environmentID] == nil {
		s.watched[environmentID] = make(chan struct{})
	}
	return s.watched[environmentID]
}

// failing reports whether a runner of the present specification failed, and none newer came up.
func (s *Service) failing(environmentID string) bool {
	failed := newestFailure(s.deps.Snapshot(), environment.JobOf(environmentID))
	return failed != nil
}
