package executor

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/optional"
)

// Bounds of one-shot runs.
const (
	defaultRunOutput = 1 << 20
	maxRunOutput     = 64 << 20
	releaseTimeout   = 10 * time.Second
	runIdle          = time.Minute // of the runner, should this process be killed before it releases it
)

// RunOnce claims a runner, copies files into it, runs the command, collects its output and releases the runner. Errors:
// those of claiming and starting; what the command does is in the result.
func (s *Executor) RunOnce(ctx context.Context, r execution.RunRequest) (execution.RunResult, error) {
	if err := validateRun(&r); err != nil {
		return execution.RunResult{}, err
	}
	if err := s.checkWebhook(r.Webhook); err != nil {
		return execution.RunResult{}, err
	}
	switch x, err := s.repeated(ctx, r.Once); {
	case err != nil:
		return execution.RunResult{}, err
	case x != nil:
		return execution.RunResult{}, errRanBefore(x.id)
	}
	begin := s.deps.Clock.Now()
	claimed, err := s.deps.Runners.Claim(ctx, execution.ClaimRequest{
		Environment: r.Environment, Namespace: r.Namespace, Wait: r.Wait, IdleTimeout: runIdle, Once: r.Once,
	})
	if err != nil {
		return execution.RunResult{}, err
	}
	result := execution.RunResult{RunnerID: claimed.ID, Claimed: s.deps.Clock.Now().Sub(begin)}
	// An earlier request with the key claimed the runner, and its server is gone, or is about to start the command.
	earlier := claimed.ClaimedAt.Before(time.Unix(0, begin.UnixNano()))
	defer func() {
		if earlier {
			return
		}
		ctx, cancel := s.deps.Clock.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if err := s.deps.Runners.Release(ctx, claimed.ID); err != nil && drover.CodeOf(err) != drover.Gone {
			s.deps.Log.Warn("releasing a runner after a run", "runner", claimed.ID, "error", err)
		}
	}()
	if err := s.copyIn(ctx, claimed.ID, r.Files); err != nil {
		return execution.RunResult{}, beganBefore(err, earlier, r.Once)
	}
	session, err := s.OpenRequest(ctx, claimed.ID, r.Request)
	if err != nil {
		return execution.RunResult{}, beganBefore(err, earlier, r.Once)
	}
	earlier = false       // now it is this one's
	defer session.Close() //nolint:errcheck // detaching cannot fail
	err = s.gather(ctx, session, r.MaxOutput, begin, &result)
	return result, err
}

// errRanBefore is the answer to a repeated run whose first answer is not kept: it must not run again.
func errRanBefore(executionID string) error {
	return drover.Errorf(drover.Conflict, "an earlier request with this idempotency key ran as execution %s; "+
		"its output is not kept, GET /v1/execution/%s has its receipt", executionID, executionID)
}

// beganBefore is the error of a run in a runner that an earlier request with its key may have claimed. If that began, the runner knows the
// execution, or another server keeps it.
func beganBefore(err error, earlier bool, once execution.Once) error {
	switch code := drover.CodeOf(err); {
	case !earlier:
		return err
	case code == drover.Conflict:
		return errRanBefore(once.ID)
	case code == drover.NotLeader:
		return drover.Errorf(drover.Unavailable, "another server carries out a request with this idempotency key: ask again")
	}
	return err
}

// validateRun checks the request and fills in its defaults. The output limit of the execution is lowered to
// MaxOutput: what the result cannot hold need not be written. The checks come before the claim, so that a bad
// request costs no runner.
func validateRun(r *execution.RunRequest) error {
	if r.MaxOutput < 0 || r.MaxOutput > maxRunOutput {
		return drover.Errorf(drover.Invalid, "maxOutput %d: want 0 to %d", r.MaxOutput, maxRunOutput)
	}
	optional.Default(&r.MaxOutput, defaultRunOutput)
	if r.Limits.OutputBytes == 0 || r.Limits.OutputBytes > r.MaxOutput {
		r.Limits.OutputBytes = r.MaxOutput
	}
	r.Detach, r.Stdin = 0, false // nobody could send more than the input
	if err := execution.PrepareChanges(r.Files); err != nil {
		return err
	}
	return ValidateRequest(r.Request)
}

// copyIn writes the files with the environment's working directory as their base. Its use of the runner is its own, and short:
// the runner counts as used during it.
func (s *Executor) copyIn(ctx context.Context, runnerID string, files []execution.FileChange) error {
	if len(files) == 0 {
		return nil
	}
	use, err := s.deps.Runners.Use(ctx, runnerID)
	if err != nil {
		return err
	}
	defer use.Done()
	return environment.Files(use.Environment(), use.Workloads().Files(use.Runner().AllocID, taskName)).Apply(ctx, files)
}

// gather reads the session until its receipt and fills the result. At most most bytes of each stream are kept; the
// rest is read and dropped, so that the program can end. All times count from begin, before the claim.
func (s *Executor) gather(ctx context.Context, session execution.Session, most int64, begin time.Time, result *execution.RunResult) error {
	var out [3][]byte
	for {
		f, err := session.Next(ctx)
		if err != nil {
			return err
		}
		if f.Receipt != nil {
			result.Receipt = *f.Receipt
			result.Ended = s.deps.Clock.Now().Sub(begin)
			result.SetOutput(out[execution.Stdout], out[execution.Stderr])
			return nil
		}
		if len(f.Data) > 0 && result.FirstByte == 0 {
			result.FirstByte = s.deps.Clock.Now().Sub(begin)
		}
		room := most - int64(len(out[f.Stream]))
		out[f.Stream] = append(out[f.Stream], f.Data[:min(int64(len(f.Data)), room)]...)
	}
}
