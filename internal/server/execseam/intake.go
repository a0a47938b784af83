package execseam

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
)

// SubscribePools follows all that concerns runners.
func SubscribePools(events *eventstream.Buffer, index uint64) (runner.Subscription, error) {
	all := []string{"*"}
	return events.Subscribe(eventstream.Request{
		Topics:    map[string][]string{drover.TopicAllocation: all, drover.TopicJob: all},
		Namespace: "*", Index: index,
	})
}

// Intake is control's intake as the execution service sees it, under a lease; 0 is that of a server that is alone.
type Intake struct {
	In    *intake.Intake
	Lease uint64
}

// RegisterJob registers an environment's job.
func (p Intake) RegisterJob(ctx context.Context, job *drover.Job) error {
	_, err := p.In.RegisterJob(ctx, drover.RegisterRequest{
		Job: job, EnforceIndex: job.JobModifyIndex != 0, JobModifyIndex: job.JobModifyIndex,
	})
	return err
}

// DeregisterJob stops and forgets an environment's job.
func (p Intake) DeregisterJob(ctx context.Context, namespace, id string) error {
	_, err := p.In.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: namespace, ID: id, Purge: true})
	return err
}

// ClaimRunners records claims.
func (p Intake) ClaimRunners(
	ctx context.Context, claims []runner.AllocClaim, demands []runner.Demand,
) (errs []error, err error) {
	list := make([]command.RunnerClaim, len(claims))
	for i, c := range claims {
		list[i] = command.RunnerClaim{AllocID: c.AllocID, Claim: c.Claim, Bounded: c.Bounded}
	}
	pools := make([]command.PoolDemand, len(demands))
	for i, d := range demands {
		job := environment.JobOf(d.Environment)
		pools[i] = command.PoolDemand{Namespace: job.Namespace, JobID: job.ID, Demand: d.Runners}
	}
	var results []command.ClaimResult
	if p.Lease == 0 {
		results, err = p.In.ClaimRunners(ctx, list, pools...)
	} else {
		results, err = p.In.RecordRunners(ctx, p.Lease, list, pools...)
	}
	for _, r := range results {
		errs = append(errs, r.Err)
	}
	return errs, err
}

// ReleaseRunners stops runners.
func (p Intake) ReleaseRunners(ctx context.Context, r runner.Releases) error {
	if p.Lease != 0 && !r.Asked {
		return p.In.ReleaseLeased(ctx, p.Lease, r.AllocIDs, r.Reason)
	}
	_, err := p.In.ReleaseRunners(ctx, r.AllocIDs, r.Reason)
	return err
}
