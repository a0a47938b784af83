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
	if s.deps.CheckImage != nil {
		if err := s.deps.CheckImage(ctx, env); err != nil {
			return false, err
		}
	}
	if err := s.awaitSync(ctx); err != nil {
		return false, err
	}
	before, err := s.Environment(ctx, env.ID)
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
	s.lookAgain(env.ID)
	return created, nil
}

// Environment returns one. Errors: NotFound.
func (s *Service) Environment(_ context.Context, id string) (execution.Environment, error) {
	job := s.deps.Snapshot().Job(environment.Namespace, environment.JobID(id))
	if job == nil || job.Stop {
		return execution.Environment{}, noEnvironment(id)
	}
	env, err := environment.FromJob(job)
	if err != nil {
		return execution.Environment{}, noEnvironment(id)
	}
	return env, nil
}

// Environments lists all, sorted by id.
func (s *Service) Environments(context.Context) ([]execution.Environment, error) {
	envs := []execution.Environment{}
	for job := range s.deps.Snapshot().Jobs(environment.Namespace, environment.JobPrefix) {
		if env, err := environment.FromJob(job); err == nil && !job.Stop {
			envs = append(envs, env)
		}
	}
	slices.SortFunc(envs, func(a, b execution.Environment) int { return cmp.Compare(a.ID, b.ID) })
	return envs, nil
}

// DeleteEnvironment ends the environment and all its runners, claimed ones too. Errors: NotFound.
func (s *Service) DeleteEnvironment(ctx context.Context, id string) error {
	if _, err := s.Environment(ctx, id); err != nil {
		return err
	}
	if err := s.deps.Intake.DeregisterJob(ctx, environment.Namespace, environment.JobID(id)); err != nil {
		return err
	}
	s.lookAgain(id)
	return nil
}

// lookAgain reads an environment that was just written, so that its writer sees what it wrote.
func (s *Service) lookAgain(id string) {
	snap := s.deps.Snapshot()
	s.tell(func(c *Core, now time.Time) { c.ReadEnvironment(now, snap, id) })
}
