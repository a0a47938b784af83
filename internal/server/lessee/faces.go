package lessee

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// The methods of this file are those of runner.Service and executor.Executor that faces use. Each calls the service that runs at
// the time. Errors, beside theirs: NotLeader.

// ask calls f with the service.
func ask[T any](ctx context.Context, l *Lessee, f func(*Life) (T, error)) (out T, err error) {
	life, err := l.now(ctx)
	if err != nil {
		return out, err
	}
	return f(life)
}

// do is ask where there is nothing to return.
func do(ctx context.Context, l *Lessee, f func(*Life) error) error {
	_, err := ask(ctx, l, func(x *Life) (struct{}, error) { return struct{}{}, f(x) })
	return err
}

// about is ask about an execution. A service that began while the request waited cannot say that there is none. The one before
// had it, as far as whoever chose this server knew, and it may have gone to another server. So the request is decided once more.
func about[T any](ctx context.Context, l *Lessee, executionID string, f func(*Life) (T, error)) (T, error) {
	before := l.life.Load()
	out, err := ask(ctx, l, f)
	if drover.CodeOf(err) == drover.NotFound && l.deps.Lead != nil && (before == nil || before != l.life.Load()) {
		return out, drover.Errorf(drover.NotLeader, "execution %s may be at another server", executionID)
	}
	return out, err
}

// PutEnvironment creates or replaces an environment.
func (l *Lessee) PutEnvironment(ctx context.Context, env execution.Environment) (created bool, err error) {
	return ask(ctx, l, func(x *Life) (bool, error) { return x.Runners.PutEnvironment(ctx, env) })
}

// ResizePool sets the size of an environment's pool.
func (l *Lessee) ResizePool(ctx context.Context, key string, size int, was *int) (execution.Environment, error) {
	return ask(ctx, l, func(x *Life) (execution.Environment, error) { return x.Runners.ResizePool(ctx, key, size, was) })
}

// Environment returns one.
func (l *Lessee) Environment(ctx context.Context, id string) (execution.Environment, error) {
	return ask(ctx, l, func(x *Life) (execution.Environment, error) { return x.Runners.Environment(ctx, id) })
}

// Environments lists those of a namespace; "*" is all.
func (l *Lessee) Environments(ctx context.Context, namespace string) ([]execution.Environment, error) {
	return ask(ctx, l, func(x *Life) ([]execution.Environment, error) { return x.Runners.Environments(ctx, namespace) })
}

// DeleteEnvironment ends an environment and its runners.
func (l *Lessee) DeleteEnvironment(ctx context.Context, id string) error {
	return do(ctx, l, func(x *Life) error { return x.Runners.DeleteEnvironment(ctx, id) })
}

// Pools tells how all pools stand.
func (l *Lessee) Pools(ctx context.Context) ([]execution.PoolStatus, error) {
	return ask(ctx, l, func(x *Life) ([]execution.PoolStatus, error) { return x.Runners.Pools(ctx) })
}

// PoolStatus tells how a pool stands.
func (l *Lessee) PoolStatus(ctx context.Context, environmentID string) (execution.PoolStatus, error) {
	return ask(ctx, l, func(x *Life) (execution.PoolStatus, error) { return x.Runners.PoolStatus(ctx, environmentID) })
}

// AwaitPool waits until the pool is full.
func (l *Lessee) AwaitPool(ctx context.Context, environmentID string, wait time.Duration) (st execution.PoolStatus, full bool, err error) {
	st, err = ask(ctx, l, func(x *Life) (st execution.PoolStatus, err error) {
		st, full, err = x.Runners.AwaitPool(ctx, environmentID, wait)
		return st, err
	})
	return st, full, err
}

// AwaitRollout waits until no runner of an older specification is warm.
func (l *Lessee) AwaitRollout(ctx context.Context, environmentID string, wait time.Duration) error {
	return do(ctx, l, func(x *Life) error { return x.Runners.AwaitRollout(ctx, environmentID, wait) })
}

// Claim hands out a warm runner. While the service may not hand out, or is being replaced, Claim waits as long as a request
// waits for a leader.
func (l *Lessee) Claim(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error) {
	ends := l.deps.Clock.Now().Add(patience)
	for {
		changed := l.changed.C()
		life, err := l.able(ctx, ends.Sub(l.deps.Clock.Now()))
		if err != nil {
			return execution.Runner{}, err
		}
		got, err := life.Runners.Claim(ctx, r)
		left := ends.Sub(l.deps.Clock.Now())
		if drover.CodeOf(err) != drover.NotLeader || left <= 0 {
			return got, err
		}
		clock.Await(ctx, l.deps.Clock, left, changed) // the service ended, or ceased to hold what it has
	}
}

// Runner returns a claimed runner.
func (l *Lessee) Runner(ctx context.Context, runnerID string) (execution.Runner, error) {
	return ask(ctx, l, func(x *Life) (execution.Runner, error) { return x.Runners.Runner(ctx, runnerID) })
}

// Runners lists warm and claimed runners of an environment, else of a namespace, "*" is all.
func (l *Lessee) Runners(ctx context.Context, namespace, environmentID string) ([]execution.Runner, error) {
	return ask(ctx, l, func(x *Life) ([]execution.Runner, error) { return x.Runners.Runners(ctx, namespace, environmentID) })
}

// Extend sets a runner's idle timeout.
func (l *Lessee) Extend(ctx context.Context, runnerID string, idleTimeout time.Duration) (execution.Runner, error) {
	return ask(ctx, l, func(x *Life) (execution.Runner, error) { return x.Runners.Extend(ctx, runnerID, idleTimeout) })
}

// Release ends a claimed runner.
func (l *Lessee) Release(ctx context.Context, runnerID string) error {
	return do(ctx, l, func(x *Life) error { return x.Runners.Release(ctx, runnerID) })
}

// ReleaseAfterOOM ends a claimed runner whose memory was not enough.
func (l *Lessee) ReleaseAfterOOM(ctx context.Context, runnerID string) error {
	return do(ctx, l, func(x *Life) error { return x.Runners.ReleaseAfterOOM(ctx, runnerID) })
}

// Files returns the files of a claimed runner.
func (l *Lessee) Files(ctx context.Context, runnerID string) (files execution.Files, done func(), err error) {
	files, err = ask(ctx, l, func(x *Life) (files execution.Files, err error) {
		files, done, err = x.Runners.Files(ctx, runnerID)
		return files, err
	})
	return files, done, err
}

// CreateRequest starts an execution for those who attach later.
func (l *Lessee) CreateRequest(ctx context.Context, runnerID string, r execution.Request) (execution.Execution, error) {
	return ask(ctx, l, func(x *Life) (execution.Execution, error) { return x.Executions.CreateRequest(ctx, runnerID, r) })
}

// OpenRequest starts an execution and attaches to it.
func (l *Lessee) OpenRequest(ctx context.Context, runnerID string, r execution.Request) (execution.Session, error) {
	return ask(ctx, l, func(x *Life) (execution.Session, error) { return x.Executions.OpenRequest(ctx, runnerID, r) })
}

// Info returns an execution.
func (l *Lessee) Info(ctx context.Context, executionID string) (execution.Execution, error) {
	return about(ctx, l, executionID, func(x *Life) (execution.Execution, error) { return x.Executions.Info(ctx, executionID) })
}

// Statement returns what may be signed of an execution that ended.
func (l *Lessee) Statement(ctx context.Context, executionID string) (execution.Statement, error) {
	return about(ctx, l, executionID, func(x *Life) (execution.Statement, error) { return x.Executions.Statement(ctx, executionID) })
}

// Wait returns an execution when it ended.
func (l *Lessee) Wait(ctx context.Context, executionID string) (execution.Execution, error) {
	return about(ctx, l, executionID, func(x *Life) (execution.Execution, error) { return x.Executions.Wait(ctx, executionID) })
}

// Attach attaches to an execution.
func (l *Lessee) Attach(ctx context.Context, executionID string, from execution.Offsets) (execution.Session, error) {
	return about(ctx, l, executionID, func(x *Life) (execution.Session, error) { return x.Executions.Attach(ctx, executionID, from) })
}

// Observe attaches an observer to an execution.
func (l *Lessee) Observe(ctx context.Context, executionID string, from execution.Offsets) (execution.Session, error) {
	return about(ctx, l, executionID, func(x *Life) (execution.Session, error) { return x.Executions.Observe(ctx, executionID, from) })
}

// Timeline says when an execution's output came.
func (l *Lessee) Timeline(ctx context.Context, executionID string) (execution.Timeline, error) {
	return about(ctx, l, executionID, func(x *Life) (execution.Timeline, error) { return x.Executions.Timeline(ctx, executionID) })
}

// Control is what can be done to an execution beside reading.
func (l *Lessee) Control(ctx context.Context, executionID string) (execution.Session, error) {
	return about(ctx, l, executionID, func(x *Life) (execution.Session, error) { return x.Executions.Control(ctx, executionID) })
}

// List returns a runner's executions.
func (l *Lessee) List(ctx context.Context, runnerID string) ([]execution.Execution, error) {
	return ask(ctx, l, func(x *Life) ([]execution.Execution, error) { return x.Executions.List(ctx, runnerID) })
}

// RunOnce claims a runner, runs a command in it and releases it. It waits as Claim does.
func (l *Lessee) RunOnce(ctx context.Context, r execution.RunRequest) (execution.RunResult, error) {
	life, err := l.able(ctx, patience)
	if err != nil {
		return execution.RunResult{}, err
	}
	return life.Executions.RunOnce(ctx, r)
}

// Shell returns the argv that runs a command in a runner's shell.
func (l *Lessee) Shell(ctx context.Context, runnerID, command string) ([]string, error) {
	return ask(ctx, l, func(x *Life) ([]string, error) { return x.Executions.Shell(ctx, runnerID, command) })
}

// Prepare keeps a specification until it is taken.
func (l *Lessee) Prepare(ctx context.Context, runnerID string, spec execution.Spec) (executionID string, err error) {
	return ask(ctx, l, func(x *Life) (string, error) { return x.Executions.Prepare(ctx, runnerID, spec) })
}

// Prepared reports whether one is kept.
func (l *Lessee) Prepared(runnerID, executionID string) bool {
	life := l.life.Load()
	return life != nil && life.Executions.Prepared(runnerID, executionID)
}

// Take returns what was prepared.
func (l *Lessee) Take(ctx context.Context, runnerID, executionID string) (execution.Spec, error) {
	return ask(ctx, l, func(x *Life) (execution.Spec, error) { return x.Executions.Take(ctx, runnerID, executionID) })
}

// Open starts an execution and attaches to it from its first byte.
func (l *Lessee) Open(ctx context.Context, runnerID string, spec execution.Spec) (execution.Session, error) {
	return ask(ctx, l, func(x *Life) (execution.Session, error) { return x.Executions.Open(ctx, runnerID, spec) })
}
