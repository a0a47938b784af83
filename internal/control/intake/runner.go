package intake

import (
	"context"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// ClaimRunners records that warm runners were handed out, and how many claims wait beyond that, in one entry, with one
// evaluation for each pool, which refills it. The results are in the order of the claims; a claim that was recorded
// before has no error. Errors of an item: NotFound, Conflict (claimed by another, or ended).
func (in *Intake) ClaimRunners(
	ctx context.Context, claims []command.RunnerClaim, demands ...command.PoolDemand,
) ([]command.ClaimResult, error) {
	if len(claims)+len(demands) == 0 {
		return nil, nil
	}
	m := in.maker()
	c := &command.ClaimRunners{Claims: claims, Demands: demands, Time: m.Now}
	c.Evals = m.Each(in.claimed(claims, demands), drover.TriggerRunnerClaim)
	return in.proposeClaims(ctx, c)
}

// proposeClaims proposes a command whose result is one of each claim in it.
func (in *Intake) proposeClaims(ctx context.Context, c command.Command) ([]command.ClaimResult, error) {
	_, result, err := in.deps.Log.Propose(ctx, c)
	if err != nil {
		return nil, err
	}
	results, ok := result.([]command.ClaimResult)
	if !ok {
		return nil, drover.Errorf(drover.Internal, "recording claims: unexpected result %T", result)
	}
	return results, nil
}

// claimed yields the jobs that claims and demands are about.
func (in *Intake) claimed(claims []command.RunnerClaim, demands []command.PoolDemand) func(yield func(*drover.Job) bool) {
	s := in.deps.Store.Snapshot()
	return func(yield func(*drover.Job) bool) {
		for _, c := range claims {
			a := s.Allocation(c.AllocID)
			if a == nil {
				continue
			}
			if j := s.Job(a.Namespace, a.JobID); j != nil && !yield(j) {
				return
			}
		}
		for _, d := range demands {
			if j := s.Job(d.Namespace, d.JobID); j != nil && !yield(j) {
				return
			}
		}
	}
}

// ReleaseRunners stops runners, in one entry. Unknown and ended ones are ignored.
func (in *Intake) ReleaseRunners(ctx context.Context, allocIDs []string, reason string) (drover.Outcome, error) {
	m := in.maker()
	s := in.deps.Store.Snapshot()
	c := &command.StopAllocs{Description: reason, Time: m.Now}
	unclaimed := []string{} // their pools have to be refilled; who releases a claimed one changes nothing for the pool
	for _, id := range allocIDs {
		a := s.Allocation(id)
		if a != nil && a.Terminal() {
			continue
		}
		c.IDs = append(c.IDs, id) // what is not known here the log may have
		// A pool with a bound may start another runner when a claimed one has ended.
		if a != nil && (a.Claim == nil || bounded(a)) {
			unclaimed = append(unclaimed, id)
		}
	}
	if len(c.IDs) == 0 {
		return drover.Outcome{Index: s.Index()}, nil
	}
	c.Evals = m.Each(in.jobsOf(slices.Values(unclaimed)), drover.TriggerAllocStop)
	return in.proposeWith(ctx, c, c.Evals...)
}

// bounded reports whether the runner's pool has a bound of warm and claimed runners together.
func bounded(a *drover.Allocation) bool {
	if a.Job == nil {
		return false
	}
	g := a.Job.Group(a.TaskGroup)
	return g != nil && g.Pool != nil && g.Pool.MaxRunners > 0
}

// jobsOf yields the jobs of the allocations, as stored.
func (in *Intake) jobsOf(allocIDs func(yield func(string) bool)) func(yield func(*drover.Job) bool) {
	s := in.deps.Store.Snapshot()
	return func(yield func(*drover.Job) bool) {
		for id := range allocIDs {
			a := s.Allocation(id)
			if a == nil {
				continue
			}
			if j := s.Job(a.Namespace, a.JobID); j != nil && !yield(j) {
				return
			}
		}
	}
}

// TellExecutions puts what happened to executions into the event stream, in one entry.
func (in *Intake) TellExecutions(ctx context.Context, events []command.ExecutionEvent) error {
	c := &command.TellExecutions{Events: events}
	for range in.deps.Store.Snapshot().Quotas("") {
		c.Time = in.now().UnixNano()
		break
	}
	_, _, err := in.deps.Log.Propose(ctx, c)
	return err
}

// RecordExecutions puts what happened to executions into the event stream and the state, and which webhooks were told,
// in one entry. Errors: Exhausted.
func (in *Intake) RecordExecutions(ctx context.Context, records []command.ExecutionRecord, told []string) error {
	_, _, err := in.deps.Log.Propose(ctx, &command.RecordExecutions{Records: records, Told: told, Time: in.now().UnixNano()})
	return err
}
