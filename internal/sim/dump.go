package sim

import (
	"github.com/drover-project/drover/internal/control/store"
)

// dump writes the state down for those who look for a cause.
func (w *World) dump() {
	if w.trace.write == nil || w.servers[0] == nil {
		return
	}
	s := w.truth().Store().Snapshot()
	w.say("state at index %d", s.Index())
	for n := range s.Nodes("") {
		w.say("  node %s %s %s %s drain=%v: %v of %v", n.Name, short(n.ID), n.Status, n.SchedulingEligibility, n.Drain, s.Used(n.ID), n.Total())
	}
	for j := range s.Jobs("*", "") {
		w.say("  job %s %s version %d stop=%v", j.ID, j.Status, j.Version, j.Stop)
		w.dumpJob(s, j.Namespace, j.ID)
	}
	for _, s := range w.servers {
		w.say("  %s index %d leads=%v", s, s.store.Index(), s.accepts)
		if s.leader != nil {
			w.say("    broker %+v", s.leader.Stats())
		}
	}
}

// dumpJob writes down what of a job is not over yet, and all of its deployments.
func (w *World) dumpJob(s *store.Snapshot, namespace, id string) {
	for a := range s.AllocationsByJob(namespace, id) {
		if !a.ClientTerminal() {
			w.say("    alloc %s %s v%d on %s: %s/%s claim=%v", short(a.ID), a.Name, a.Version(), short(a.NodeID), a.DesiredStatus, a.ClientStatus,
				a.Claim != nil)
		}
	}
	for e := range s.EvaluationsByJob(namespace, id) {
		if !e.Terminal() {
			w.say("    eval %s %s %s snapshot %d modified %d until %s classes %v escaped %v queued %v", short(e.ID), e.TriggeredBy, e.Status,
				e.SnapshotIndex, e.ModifyIndex, e.WaitUntil, e.ClassEligibility, e.EscapedComputedClass, e.QueuedAllocations)
		}
	}
	for d := range s.DeploymentsByJob(namespace, id) {
		w.say("    deployment %s version %d: %s (%s)", short(d.ID), d.JobVersion, d.Status, d.StatusDescription)
	}
}
