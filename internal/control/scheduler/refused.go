package scheduler

import "github.com/drover-project/drover"

// Refused returns the new and updated allocations of a plan that the planner did not commit, by id.
func Refused(p *drover.Plan, result *drover.PlanResult) map[string]*drover.Allocation {
	out := map[string]*drover.Allocation{}
	for _, allocs := range p.NodeAllocation {
		for _, a := range allocs {
			out[a.ID] = a
		}
	}
	for _, allocs := range result.NodeAllocation {
		for _, a := range allocs {
			delete(out, a.ID)
		}
	}
	return out
}

// Progressed reports whether any of the plan was committed: attempts are counted anew after progress.
func Progressed(result *drover.PlanResult) bool {
	return len(result.NodeUpdate)+len(result.NodeAllocation)+len(result.NodePreemptions) > 0 || result.Deployment != nil
}
