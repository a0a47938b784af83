package planner

import (
	"context"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// withheld are the warm runners that a plan stops.
type withheld struct {
	warm     []string
	leases   []uint64 // as Deps.Withhold returns them
	giveBack func(settled bool)
}

// withhold keeps the warm runners that the plan stops from being handed out until giveBack is called, as Deps.Withhold says. Errors: those
// of Deps.Withhold.
func (p *Planner) withhold(ctx context.Context, plan *drover.Plan) (w withheld, err error) {
	w.giveBack = func(bool) {}
	if p.deps.Withhold == nil {
		return w, nil
	}
	if w.warm = stoppedWarm(plan); len(w.warm) == 0 {
		return w, nil
	}
	w.leases, w.giveBack, err = p.deps.Withhold(ctx, w.warm)
	return w, err
}

// tellsWithheld is the cluster version from which on a plan says which runners are withheld, and by whom: older servers stop them
// whoever has them.
const tellsWithheld = 3

// note tells the state machine which of the runners that are stopped are warm, and who withholds them.
func (w *withheld) note(c *command.PlanCommit, allAtOnce bool, version int) {
	if len(w.leases) == 0 || version < tellsWithheld {
		return
	}
	stops := map[string]bool{} // not all that the plan asked for
	for _, s := range c.Stopped {
		stops[s.ID] = true
	}
	for _, x := range c.Preempted {
		stops[x.ID] = true
	}
	if warm := slices.DeleteFunc(slices.Clone(w.warm), func(id string) bool { return !stops[id] }); len(warm) > 0 {
		c.Warm, c.Withheld, c.AllAtOnce = warm, w.leases, allAtOnce
	}
}

// stoppedWarm returns the warm runners that the plan stops. What it says to be lost was not before: a server may just have handed it out,
// and is to record that first.
func stoppedWarm(plan *drover.Plan) (ids []string) {
	for _, list := range plan.NodeUpdate {
		for _, a := range list {
			if pooled(plan.Job, a) && a.Claim == nil && (!a.ClientTerminal() || a.ClientStatus == drover.AllocClientLost) {
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
