package runner

import (
	"context"
	"reflect"
	"time"

	"drover"
	"drover/internal/exec/environment"
)

// AwaitPool waits until the environment's pool is full of runners of its present specification, one of them failed, or
// the time is over, and says how the pool stands and whether it is full. Errors: NotFound; ctx's.
func (s *Service) AwaitPool(ctx context.Context, environmentID string, wait time.Duration) (st drover.PoolStatus, full bool, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return st, false, err
	}
	timer := s.deps.Clock.NewTimer(max(wait, 0))
	defer timer.Stop()
	for late := false; ; {
		full, changed, err := s.poolFull(environmentID)
		if err != nil {
			return st, false, err
		}
		st, err = s.PoolStatus(ctx, environmentID)
		if err != nil || full || late || s.failing(environmentID) {
			return st, full, err
		}
		select {
		case <-changed:
		case <-timer.C():
			late = true
		case <-ctx.Done():
			return st, false, drover.Errorf(drover.Canceled, "waiting for a pool: %w", context.Cause(ctx))
		}
	}
}

// poolFull reports whether all warm runners are there and none is of an older specification.
func (s *Service) poolFull(environmentID string) (full bool, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.envLocked(environmentID)
	if e == nil {
		return false, nil, noEnvironment(environmentID)
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	job := s.deps.Snapshot().Job(environment.Namespace, environment.JobID(environmentID))
	if job == nil {
		return false, nil, noEnvironment(environmentID)
	}
	current, old := 0, 0
	for _, r := range s.runners {
		switch {
		case r.env != environmentID || r.claim != nil:
		case sameRunner(r.alloc.Job, job):
			current++
		default:
			old++
		}
	}
	return old == 0 && current >= e.PoolSize, e.changed, nil
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
