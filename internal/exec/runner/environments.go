package runner

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// PutEnvironment creates or replaces an environment; putting it unchanged changes nothing. Errors: Invalid.
func (s *Service) PutEnvironment(ctx context.Context, env execution.Environment) (created bool, err error) {
	if err := environment.Validate(env); err != nil {
		return false, err
	}
	env = environment.Canonicalize(env)
	if s.deps.Check != nil {
		if err := s.deps.Check(ctx, env); err != nil {
			return false, err
		}
	}
	if err := s.awaitSync(ctx); err != nil {
		return false, err
	}
	before, err := s.Environment(ctx, env.Key())
	created = err != nil
	if !created && reflect.DeepEqual(environment.Canonicalize(before), env) {
		return false, nil
	}
	job, err := environment.ToJob(env, s.cfg.Environments)
	if err != nil {
		return false, err
	}
	if err := s.deps.Intake.RegisterJob(ctx, job); err != nil {
		return false, err
	}
	s.lookAgain(env.Key())
	return created, nil
}

// resizeTries bounds how often a pool's size is set anew because something else of its environment changed meanwhile.
const resizeTries = 8

// ResizePool sets the size of an environment's pool, and changes nothing else of it. was, if not nil, is the size that the caller knows.
// Errors: NotFound; Invalid; Conflict: the size is another one by now, which it says.
func (s *Service) ResizePool(ctx context.Context, key string, size int, was *int) (env execution.Environment, err error) {
	for range resizeTries {
		if env, err = s.resizePool(ctx, key, size, was); drover.CodeOf(err) != drover.Conflict || errors.Is(err, errResized) {
			break
		}
	}
	return env, err
}

// errResized is in the error of who knows another size than there is.
var errResized = errors.New("the pool has another size by now") // a constant

// resizePool is one try. Errors: those of ResizePool; Conflict when something else of the environment changed meanwhile.
func (s *Service) resizePool(ctx context.Context, key string, size int, was *int) (env execution.Environment, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return env, err
	}
	at := environment.JobOf(key)
	old := s.deps.Snapshot().Job(at.Namespace, at.ID)
	if env, err = s.Environment(ctx, key); err != nil || old == nil {
		return env, cmp.Or(err, noEnvironment(key))
	}
	if was != nil && env.PoolSize != *was {
		return env, drover.Errorf(drover.Conflict, "%w: poolSize is %d, not %d", errResized, env.PoolSize, *was)
	}
	if env.PoolSize == size {
		return env, nil
	}
	env.PoolSize = size
	if err := environment.Validate(env); err != nil {
		return env, err
	}
	env = environment.Canonicalize(env)
	job, err := environment.ToJob(env, s.cfg.Environments)
	if err != nil {
		return env, err
	}
	job.JobModifyIndex = old.JobModifyIndex // it is refused if that changed
	if err := s.deps.Intake.RegisterJob(ctx, job); err != nil {
		return env, err
	}
	s.lookAgain(key)
	return env, nil
}

// Environment returns the one with the key (execution.Key). Errors: NotFound.
func (s *Service) Environment(_ context.Context, key string) (execution.Environment, error) {
	at := environment.JobOf(key)
	job := s.deps.Snapshot().Job(at.Namespace, at.ID)
	if job == nil || job.Stop {
		return execution.Environment{}, noEnvironment(key)
	}
	env, err := environment.FromJob(job)
	if err != nil {
		return execution.Environment{}, noEnvironment(key)
	}
	return env, nil
}

// Environments lists those of a namespace, "*" is all, sorted by key.
func (s *Service) Environments(_ context.Context, namespace string) ([]execution.Environment, error) {
	envs := []execution.Environment{}
	for job := range s.deps.Snapshot().Jobs(namespace, environment.JobPrefix) {
		if env, err := environment.FromJob(job); err == nil && !job.Stop {
			envs = append(envs, env)
		}
	}
	slices.SortFunc(envs, func(a, b execution.Environment) int { return cmp.Compare(a.Key(), b.Key()) })
	return envs, nil
}

// DeleteEnvironment ends the environment and all its runners, claimed ones too. Errors: NotFound.
func (s *Service) DeleteEnvironment(ctx context.Context, key string) error {
	if _, err := s.Environment(ctx, key); err != nil {
		return err
	}
	at := environment.JobOf(key)
	if err := s.deps.Intake.DeregisterJob(ctx, at.Namespace, at.ID); err != nil {
		return err
	}
	s.lookAgain(key)
	return nil
}

// lookAgain reads an environment that was just written, so that its writer sees what it wrote.
func (s *Service) lookAgain(id string) {
	snap := s.deps.Snapshot()
	s.tell(func(c *Core, now time.Time) { c.ReadEnvironment(now, snap, id) })
}
