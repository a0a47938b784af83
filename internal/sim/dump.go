package sim

import (
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// dump writes the state down for those who look for a cause.
func (w *World) dump() {
	if w.Trace.Write == nil || w.servers[0] == nil {
		return
	}
	s := w.truth().Store().Snapshot()
	w.Say("state at index %d", s.Index())
	for n := range s.Nodes("") {
		w.Say("  node %s %s %s %s drain=%v: %v of %v", n.Name, virtual.Short(n.ID), n.Status, n.SchedulingEligibility, n.Drain,
			s.Used(n.ID), n.Total())
	}
	for j := range s.Jobs("*", "") {
		w.Say("  job %s %s version %d stop=%v", j.ID, j.Status, j.Version, j.Stop)
		w.dumpJob(s, j.Namespace, j.ID)
	}
	for _, s := range w.servers {
		w.Say("  %s index %d leads=%v", s, s.store.Index(), s.accepts)
		if s.leader != nil {
			w.Say("    broker %+v", s.leader.Stats())
		}
	}
}

// dumpJob writes down what of a job is not over yet, and all of its deployments.
func (w *World) dumpJob(s *store.Snapshot, namespace, id string) {
	for a := range s.AllocationsByJob(namespace, id) {
		if !a.ClientTerminal() {
			w.Say("    alloc %s %s v%d on %s: %s/%s claim=%v", virtual.Short(a.ID), a.Name, a.Version(), virtual.Short(a.NodeID),
				a.DesiredStatus, a.ClientStatus, a.Claim != nil)
		}
	}
	for e := range s.EvaluationsByJob(namespace, id) {
		if !e.Terminal() {
			w.Say("    eval %s %s %s snapshot %d modified %d until %s classes %v escaped %v queued %v", virtual.Short(e.ID), e.TriggeredBy, e.Status,
				e.SnapshotIndex, e.ModifyIndex, e.WaitUntil, e.ClassEligibility, e.EscapedComputedClass, e.QueuedAllocations)
		}
	}
	for d := range s.DeploymentsByJob(namespace, id) {
		w.Say("    deployment %s version %d: %s (%s)", virtual.Short(d.ID), d.JobVersion, d.Status, d.StatusDescription)
		for _, g := range slices.Sorted(maps.Keys(d.TaskGroups)) {
			w.Say("      group %s: %+v", g, *d.TaskGroups[g])
		}
	}
}
