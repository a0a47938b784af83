package scheduler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover"
)

// describe prints what an output does, sorted.
func (w *world) describe(out Output) string {
	var lines []string
	for node, allocs := range out.Plan.NodeUpdate {
		for _, a := range allocs {
			lines = append(lines, describeUpdate(a, node))
		}
	}
	for node, allocs := range out.Plan.NodePreemptions {
		for _, a := range allocs {
			if a.PreemptedByAllocation != "" {
				lines = append(lines, fmt.Sprintf("%s on %s was evicted for %s", a.Name, node, w.allocs[a.PreemptedByAllocation].Name))
			} else {
				lines = append(lines, fmt.Sprintf("evict %s on %s", a.Name, node))
			}
		}
	}
	for node, allocs := range out.Plan.NodeAllocation {
		for _, a := range allocs {
			lines = append(lines, w.describeAllocation(a, node))
		}
	}
	slices.Sort(lines)
	lines = append(lines, w.describeDeployments(out.Plan)...)
	for _, e := range out.NewEvals {
		lines = append(lines, w.describeEvaluation(e))
	}
	for _, x := range out.Explanation.Groups {
		if x.Failed > 0 || x.note != "" {
			lines = append(lines, x.Sentence)
		}
	}
	return text(lines)
}

func describeUpdate(a *drover.Allocation, node string) string {
	switch {
	case a.DesiredStatus == drover.AllocDesiredRun:
		return fmt.Sprintf("%s on %s waits", a.Name, node)
	case a.ClientStatus == drover.AllocClientLost:
		return fmt.Sprintf("lost %s on %s", a.Name, node)
	}
	return fmt.Sprintf("stop %s on %s v%d: %s", a.Name, node, a.Version(), a.DesiredDescription)
}

func (w *world) describeAllocation(a *drover.Allocation, node string) string {
	switch {
	case a.CreateIndex < w.index:
		return fmt.Sprintf("update %s on %s", a.Name, node)
	case a.DeploymentStatus != nil && a.DeploymentStatus.Canary:
		return fmt.Sprintf("place %s on %s as canary", a.Name, node)
	case a.PreviousAllocation != "":
		return fmt.Sprintf("place %s on %s for %s", a.Name, node, w.allocs[a.PreviousAllocation].NodeID)
	}
	return fmt.Sprintf("place %s on %s", a.Name, node)
}

func (w *world) describeDeployments(p *drover.Plan) (lines []string) {
	if d := p.Deployment; d != nil {
		if d.CreateIndex == w.index {
			lines = append(lines, "deployment")
		}
		for _, g := range slices.Sorted(maps.Keys(d.TaskGroups)) {
			if s := d.TaskGroups[g]; w.jobs[d.JobID].Type == drover.JobTypeSystem {
				lines = append(lines, fmt.Sprintf("deployment wants %d of %s, %d canaries", s.DesiredTotal, g, s.DesiredCanaries))
			}
		}
	}
	for _, u := range p.DeploymentUpdates {
		lines = append(lines, fmt.Sprintf("deployment %s: %s", u.Status, u.StatusDescription))
	}
	return lines
}

func (w *world) describeEvaluation(e *drover.Evaluation) string {
	switch {
	case e.TriggeredBy == drover.TriggerPreemption:
		return fmt.Sprintf("look at %s in %s", e.JobID, e.WaitUntil.Sub(w.now))
	case e.Status == drover.EvalBlocked:
		return fmt.Sprintf("blocked, escaped %t, classes %d", e.EscapedComputedClass, len(e.ClassEligibility))
	}
	return fmt.Sprintf("look again in %s: %s", e.WaitUntil.Sub(w.now), e.TriggeredBy)
}
