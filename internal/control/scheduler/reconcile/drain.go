package reconcile

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/optional"
)

// drained reports whether the end of a drain took the allocation: batch work which may not go on anywhere else.
func (r *Reconciler) drained(a *drover.Allocation) bool {
	return r.Job.Type == drover.JobTypeBatch && optional.Value(a.DesiredTransition.MigrateDisablePlacement) && !r.older(a)
}

// classifyDrained ends batch work that a drain's deadline met, and counts it as done: to start it again from its
// beginning is its author's decision, as on Nomad.
func (r *Reconciler) classifyDrained(s *sorted, g *drover.TaskGroup, a *drover.Allocation) {
	if !a.ClientTerminal() && (!a.ServerTerminal() || r.Lost(a.NodeID)) {
		r.End(a, draft.WhyMigrating)
		r.Updates(g.Name).Stop++
	}
	if a.Index() < g.DesiredCount() {
		s.done = append(s.done, a)
	}
}
