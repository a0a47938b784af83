package runner

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

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
