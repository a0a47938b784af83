package scheduler

import "github.com/drover-project/drover"

// drained reports whether the end of a drain took the allocation: batch work which may not go on anywhere else.
func (r *run) drained(a *drover.Allocation) bool {
	return r.job.Type == drover.JobTypeBatch && isTrue(a.DesiredTransition.MigrateDisablePlacement) && !r.older(a)
}

// classifyDrained ends batch work that a drain's deadline met, and counts it as done: to start it again from its
// beginning is its author's decision, as on Nomad.
func (r *run) classifyDrained(s *sorted, g *drover.TaskGroup, a *drover.Allocation) {
	if !a.ClientTerminal() && (!a.ServerTerminal() || r.lost(a.NodeID)) {
		r.end(a, whyMigrating)
		r.updates(g.Name).Stop++
	}
	if allocIndex(a.Name) < desiredCount(g) {
		s.done = append(s.done, a)
	}
}
