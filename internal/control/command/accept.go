package command

import (
	"maps"
	"slices"

	"github.com/drover-project/drover"
)

// Accept translates the accepted part of a plan. The plan is not changed; allocations are copied without their Job.
func Accept(plan *drover.Plan, accepted *drover.PlanResult) PlanCommit {
	c := PlanCommit{
		EvalID: plan.EvalID, Job: plan.Job, Deployment: accepted.Deployment, DeploymentUpdates: plan.DeploymentUpdates,
	}
	for _, node := range slices.Sorted(maps.Keys(accepted.NodeAllocation)) {
		for _, a := range accepted.NodeAllocation[node] {
			placed := *a
			if a.Job != nil && plan.Job != nil && a.Job.Version != plan.Job.Version {
				if c.Older == nil {
					c.Older = map[string]*drover.Job{}
				}
				c.Older[a.ID] = a.Job
			}
			placed.Job = nil
			c.Placed = append(c.Placed, &placed)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(accepted.NodeUpdate)) {
		for _, a := range accepted.NodeUpdate[node] {
			s := StoppedAlloc{
				ID: a.ID, Description: a.DesiredDescription, DesiredStatus: a.DesiredStatus, FollowupEvalID: a.FollowupEvalID,
				RescheduleTracker: a.RescheduleTracker,
			}
			if a.ClientStatus == drover.AllocClientLost || a.ClientStatus == drover.AllocClientUnknown {
				s.ClientStatus = a.ClientStatus
			}
			c.Stopped = append(c.Stopped, s)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(accepted.NodePreemptions)) {
		for _, a := range accepted.NodePreemptions[node] {
			c.Preempted = append(c.Preempted, PreemptedAlloc{ID: a.ID, By: a.PreemptedByAllocation, Description: a.DesiredDescription})
		}
	}
	return c
}

// Sparing returns the commit without the allocations that are spared, each with its node, and without what else is placed and preempted
// on their nodes; the planner refuses nodes in the same way. What would replace a spared one elsewhere is left out, too: that goes on, and
// counts for quotas. find returns an allocation of the state.
func (p *PlanCommit) Sparing(spared map[string]string, find func(id string) *drover.Allocation) *PlanCommit {
	left, nodes := *p, map[string]bool{}
	for _, node := range spared {
		nodes[node] = true
	}
	left.Stopped = slices.DeleteFunc(slices.Clone(p.Stopped), func(s StoppedAlloc) bool {
		_, spare := spared[s.ID]
		return spare || p.AllAtOnce
	})
	left.Preempted = slices.DeleteFunc(slices.Clone(p.Preempted), func(x PreemptedAlloc) bool {
		a := find(x.ID)
		return p.AllAtOnce || a != nil && nodes[a.NodeID]
	})
	left.Placed = slices.DeleteFunc(slices.Clone(p.Placed), func(a *drover.Allocation) bool {
		_, replaces := spared[a.PreviousAllocation]
		return p.AllAtOnce || nodes[a.NodeID] || replaces
	})
	if p.AllAtOnce {
		left.Deployment, left.DeploymentUpdates = nil, nil
	}
	return &left
}
