package executor

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// prepared is an execution that is described, and not started yet.
type prepared struct {
	runnerID string
	spec     execution.Spec
	at       time.Time
	bytes    int
}

// The bounds of what waits to be started, over all runners.
const (
	maxPrepared      = 100_000
	maxPreparedBytes = 256 << 20
)

// Prepare keeps a spec for the one who will connect with its id. Errors: Invalid, NotFound, Gone, Exhausted.
func (s *Executor) Prepare(ctx context.Context, runnerID string, spec execution.Spec) (executionID string, err error) {
	if err := Validate(spec); err != nil {
		return "", err
	}
	use, err := s.deps.Runners.Use(ctx, runnerID)
	if err != nil {
		return "", err
	}
	defer use.Done()
	spec.ID = s.deps.IDs.New()
	p := prepared{runnerID, spec, s.deps.Clock.Now(), sizeOf(spec)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	if len(s.prepared) >= maxPrepared || s.preparedBytes+p.bytes > maxPreparedBytes {
		return "", drover.Errorf(drover.Exhausted, "%d prepared executions of %d bytes wait already", len(s.prepared), s.preparedBytes)
	}
	s.prepared[spec.ID] = p
	s.preparedBytes += p.bytes
	return spec.ID, nil
}

// sizeOf is about the memory that a prepared spec takes: the bytes of its arguments and variables.
func sizeOf(spec execution.Spec) (n int) {
	for _, a := range spec.Argv {
		n += len(a)
	}
	for k, v := range spec.Env {
		n += len(k) + len(v)
	}
	return n
}

// unprepareLocked forgets a prepared execution, and the bytes that it counted for.
func (s *Executor) unprepareLocked(executionID string, p prepared) {
	delete(s.prepared, executionID)
	s.preparedBytes -= p.bytes
}

// Prepared reports whether Take would find it.
func (s *Executor) Prepared(runnerID, executionID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.preparedLocked(runnerID, executionID)
	return ok
}

// preparedLocked finds a prepared execution, of this runner only: whoever has the id of another runner's must not
// start it. Expiry is checked here too, because expireLocked sweeps only once a second.
func (s *Executor) preparedLocked(runnerID, executionID string) (p prepared, ok bool) {
	s.expireLocked()
	p, ok = s.prepared[executionID]
	return p, ok && p.runnerID == runnerID && !s.staleLocked(p, s.deps.Clock.Now())
}

// Take takes a prepared execution out, once; Open starts it. Errors: NotFound; Gone and NotFound of the runner.
func (s *Executor) Take(ctx context.Context, runnerID, executionID string) (execution.Spec, error) {
	use, err := s.deps.Runners.Use(ctx, runnerID)
	if err != nil {
		return execution.Spec{}, err
	}
	use.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.preparedLocked(runnerID, executionID)
	if !ok {
		return execution.Spec{}, drover.Errorf(drover.NotFound, "execution id unknown")
	}
	s.unprepareLocked(executionID, p)
	return p.spec, nil
}
