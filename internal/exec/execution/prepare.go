package execution

import (
	"context"
	"time"

	"drover"
)

// Prepared is an execution that is described, and not started yet.
type Prepared struct {
	RunnerID string
	Spec     drover.ExecutionSpec
	at       time.Time
}

// maxPrepared bounds what waits to be started, over all runners.
const maxPrepared = 100_000

// Prepare keeps a spec for the one who will connect with its id. Errors: Invalid, NotFound, Gone, Exhausted.
func (s *Service) Prepare(ctx context.Context, runnerID string, spec drover.ExecutionSpec) (executionID string, err error) {
	if err := Validate(spec); err != nil {
		return "", err
	}
	lease, err := s.deps.Runners.Acquire(ctx, runnerID)
	if err != nil {
		return "", err
	}
	defer lease.Done()
	spec.ID = s.deps.IDs.New()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.prepared) >= maxPrepared {
		s.expireLocked()
		if len(s.prepared) >= maxPrepared {
			return "", drover.Errorf(drover.Exhausted, "%d prepared executions wait already", maxPrepared)
		}
	}
	s.prepared[spec.ID] = Prepared{runnerID, spec, s.deps.Clock.Now()}
	return spec.ID, nil
}

// Take takes a prepared execution out, once. Errors: NotFound; Gone and NotFound of the runner.
func (s *Service) Take(ctx context.Context, runnerID, executionID string) (Prepared, error) {
	lease, err := s.deps.Runners.Acquire(ctx, runnerID)
	if err != nil {
		return Prepared{}, err
	}
	lease.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	p, ok := s.prepared[executionID]
	if !ok || p.RunnerID != runnerID {
		return Prepared{}, drover.Errorf(drover.NotFound, "execution id unknown")
	}
	delete(s.prepared, executionID)
	return p, nil
}
