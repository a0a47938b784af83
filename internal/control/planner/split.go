package planner

import (
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler"
)

// split returns the parts in which a plan is committed. A plan of more than so many allocations would be one large entry of the
// log. It would keep all servers from doing anything else while it is written, sent and applied, and its nodes would begin only
// when all of it is there. The part of a node stays whole, and so does a plan that is to be all or nothing. The first part has
// what is about the deployment: the others count in it.
func split(plan *drover.Plan, most int) []*drover.Plan {
	if plan.AllAtOnce || size(plan) <= most {
		return []*drover.Plan{plan}
	}
	var parts []*drover.Plan
	next := func() *drover.Plan {
		part := *plan
		part.NodeUpdate, part.NodeAllocation, part.NodePreemptions = nil, nil, nil
		if len(parts) > 0 {
			part.Deployment, part.DeploymentUpdates = nil, nil
		}
		parts = append(parts, &part)
		return &part
	}
	part, n := next(), 0
	for _, id := range nodesOf(plan) {
		more := len(plan.NodeUpdate[id]) + len(plan.NodeAllocation[id]) + len(plan.NodePreemptions[id])
		if n > 0 && n+more > most {
			part, n = next(), 0
		}
		n += more
		move(&part.NodeUpdate, id, plan.NodeUpdate[id])
		move(&part.NodeAllocation, id, plan.NodeAllocation[id])
		move(&part.NodePreemptions, id, plan.NodePreemptions[id])
	}
	return parts
}

// size is how many allocations a plan touches.
func size(plan *drover.Plan) (n int) {
	for _, m := range []map[string][]*drover.Allocation{plan.NodeUpdate, plan.NodeAllocation, plan.NodePreemptions} {
		for _, list := range m {
			n += len(list)
		}
	}
	return n
}

func move(into *map[string][]*drover.Allocation, nodeID string, list []*drover.Allocation) {
	if len(list) == 0 {
		return
	}
	if *into == nil {
		*into = map[string][]*drover.Allocation{}
	}
	(*into)[nodeID] = list
}

// whole is what became of the parts of a plan.
type whole struct {
	drover.PlanResult
	followed bool // the evaluations that are looked at later are stored
}

// evals returns those that go with the next part: what ends the evaluation goes with the last one, if no part was refused. What is
// looked at later goes with the first that is committed, as the next plan would not make it again.
func (w *whole) evals(all []*drover.Evaluation, last bool) (out []*drover.Evaluation) {
	later := followUps(all)
	for _, e := range all {
		follows := slices.Contains(later, e)
		if follows && !w.followed || !follows && last && w.RefreshIndex == 0 {
			out = append(out, e)
		}
	}
	return out
}

// add takes in the result of a part.
func (w *whole) add(r drover.PlanResult) {
	w.followed = w.followed || r.RefreshIndex == 0 || scheduler.Progressed(&r)
	if w.NodeAllocation == nil {
		w.PlanResult = r
		return
	}
	maps.Copy(w.NodeUpdate, r.NodeUpdate)
	maps.Copy(w.NodeAllocation, r.NodeAllocation)
	maps.Copy(w.NodePreemptions, r.NodePreemptions)
	w.RejectedNodes = append(w.RejectedNodes, r.RejectedNodes...)
	w.RefreshIndex, w.AllocIndex = max(w.RefreshIndex, r.RefreshIndex), max(w.AllocIndex, r.AllocIndex)
}
