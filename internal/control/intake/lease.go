package intake

import (
	"context"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// BeginIncarnation begins an incarnation of the server, to which warm runners are leased, and returns it. An earlier
// incarnation of the same server ends and is returned too: unclaimed runners that were leased to it are stopped.
func (in *Intake) BeginIncarnation(ctx context.Context, server string) (incarnation, former uint64, err error) {
	m := in.maker()
	c := &command.BeginIncarnation{Server: server, Time: m.Now, Evals: m.Each(in.pools(), drover.TriggerAllocStop)}
	_, result, err := in.deps.Log.Propose(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	begun, ok := result.(command.Begun)
	if !ok {
		return 0, 0, drover.Errorf(drover.Internal, "beginning an incarnation: unexpected result %T", result)
	}
	return begun.Incarnation, begun.Former, nil
}

// EndIncarnation ends an incarnation. The heir gets its claimed runners. The unclaimed ones are stopped, unless the incarnation
// itself returns them: then they are leased to others.
func (in *Intake) EndIncarnation(ctx context.Context, incarnation, heir uint64, returned bool) error {
	m := in.maker()
	c := &command.EndIncarnation{Incarnation: incarnation, Heir: heir, Returned: returned, Time: m.Now}
	c.Evals = m.Each(in.pools(), drover.TriggerAllocStop)
	_, _, err := in.deps.Log.Propose(ctx, c)
	return err
}

// MoveClaimed gives an incarnation's claimed runners to the heir. The incarnation goes on.
func (in *Intake) MoveClaimed(ctx context.Context, incarnation, heir uint64) error {
	c := &command.EndIncarnation{Incarnation: incarnation, Heir: heir, Claimed: true, Time: in.maker().Now}
	_, _, err := in.deps.Log.Propose(ctx, c)
	return err
}

// RecordRunners is ClaimRunners of one of several servers, under its incarnation.
func (in *Intake) RecordRunners(
	ctx context.Context, incarnation uint64, claims []command.RunnerClaim, demands ...command.PoolDemand,
) ([]command.ClaimResult, error) {
	if len(claims)+len(demands) == 0 {
		return nil, nil
	}
	m := in.maker()
	c := &command.RecordRunners{Incarnation: incarnation, Claims: claims, Demands: demands, Time: m.Now}
	c.Evals = m.Each(in.claimed(claims, demands), drover.TriggerRunnerClaim)
	return in.proposeClaims(ctx, c)
}

// ReleaseLeased is ReleaseRunners of one of several servers: it stops what is leased to its incarnation, and nothing else.
func (in *Intake) ReleaseLeased(ctx context.Context, incarnation uint64, allocIDs []string, reason string) error {
	m := in.maker()
	s := in.deps.Store.Snapshot()
	var unclaimed []string
	for _, id := range allocIDs {
		if a := s.Allocation(id); a != nil && !a.Terminal() && (a.Claim == nil || bounded(a)) {
			unclaimed = append(unclaimed, id)
		}
	}
	_, _, err := in.deps.Log.Propose(ctx, &command.RecordRunners{
		Incarnation: incarnation, Released: allocIDs, Reason: reason, Time: m.Now,
		Evals: m.Each(in.jobsOf(slices.Values(unclaimed)), drover.TriggerAllocStop),
	})
	return err
}

// pools yields the jobs that keep warm runners.
func (in *Intake) pools() func(yield func(*drover.Job) bool) {
	s := in.deps.Store.Snapshot()
	return func(yield func(*drover.Job) bool) {
		for j := range s.Jobs("*", "") {
			if slices.ContainsFunc(j.TaskGroups, func(g *drover.TaskGroup) bool { return g.Pool != nil }) && !yield(j) {
				return
			}
		}
	}
}
