package planner

import (
	"context"

	"github.com/drover-project/drover"
)

// withhold keeps the warm runners that the plan stops from being handed out until the function it returns is called.
// Errors: those of Deps.Withhold.
func (p *Planner) withhold(ctx context.Context, plan *drover.Plan) (giveBack func(), err error) {
	if p.deps.Withhold == nil {
		return func() {}, nil
	}
	ids := stoppedWarm(plan)
	if len(ids) == 0 {
		return func() {}, nil
	}
	return p.deps.Withhold(ctx, ids)
}

// stoppedWarm returns the warm runners that the plan stops.
func stoppedWarm(plan *drover.Plan) (ids []string) {
	for _, list := range plan.NodeUpdate {
		for _, a := range list {
			if pooled(plan.Job, a) && a.Claim == nil && !a.ClientTerminal() {
				ids = append(ids, a.ID)
			}
		}
	}
	for _, list := range plan.NodePreemptions {
		for _, a := range list {
			if pooled(a.Job, a) && a.Claim == nil {
				ids = append(ids, a.ID)
			}
		}
	}
	return ids
}

// pooled reports whether a claimer could take the allocation while the plan that stops it is committed.
func pooled(job *drover.Job, a *drover.Allocation) bool {
	if job == nil || job.Stop {
		return false // all of it ends, claimed or not
	}
	g := job.Group(a.TaskGroup)
	return g != nil && g.Pool != nil
}
