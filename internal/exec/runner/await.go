package runner

import (
	"context"
	"reflect"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// AwaitPool waits until the environment's pool is full of runners of its present specification, one of them failed, or
// the time is over, and says how the pool stands and whether it is full. Errors: NotFound; ctx's.
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

// census counts the warm runners of the present and of older specifications, beside the wanted size.
type census struct{ current, old, size int }

func (s *Service) count(environmentID string) (now census, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.envLocked(environmentID)
	if e == nil {
		return now, nil, noEnvironment(environmentID)
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	job := s.deps.Snapshot().Job(environment.Namespace, environment.JobID(environmentID))
	if job == nil {
		return now, nil, noEnvironment(environmentID)
	}
	now.size = e.PoolSize
	for _, r := range s.runners {
		switch {
		case r.env != environmentID || r.claim != nil:
		case sameRunner(r.alloc.Job, job):
			now.current++
		default:
			now.old++
		}
	}
	return now, e.changed, nil
}

// sameRunner reports whether runners of both jobs are made alike.
func sameRunner(of, job *drover.Job) bool {
	if of == nil || of.Version == job.Version || len(of.TaskGroups) != 1 {
		return true
	}
	a, b := of.TaskGroups[0], job.TaskGroups[0]
	return reflect.DeepEqual(a.Tasks, b.Tasks) && reflect.DeepEqual(a.Networks, b.Networks) && reflect.DeepEqual(a.EphemeralDisk, b.EphemeralDisk)
}

func (s *Service) failing(environmentID string) bool {
	failed := newestFailure(s.deps.Snapshot(), environment.JobID(environmentID))
	return failed != nil
}

// wake tells those who watch the pool; it is called with mu held.
func (e *env) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}
