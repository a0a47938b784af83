package sim

import (
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/sim/settled"
)

// unrest says what keeps the world from being as it was asked for; "" if nothing does. It is looked at when the faults
// are over.
func (w *World) unrest() string {
	s := w.truth().Store().Snapshot()
	if why := w.serversRest(); why != "" {
		return why
	}
	for e := range s.Evaluations("*", "") {
		if e.Status == drover.EvalPending {
			return fmt.Sprintf("evaluation %s of %s (%s) is pending until %s", e.ID, e.JobID, e.TriggeredBy, e.WaitUntil)
		}
	}
	for n := range s.Nodes("") {
		if n.Status != drover.NodeStatusReady {
			return fmt.Sprintf("node %s is %s", n.Name, n.Status)
		}
	}
	for _, f := range []func(*store.Snapshot) string{settled.Allocations, w.jobsRest, w.nodesRest, w.claimsRest, w.extra.Unrest} {
		if why := f(s); why != "" {
			return why
		}
	}
	return ""
}

// jobsRest: the scheduler has nothing to do.
func (w *World) jobsRest(s *store.Snapshot) string { return settled.Jobs(s, w.Now) }

// nodesRest: what runs on the machines is what the state says runs there, neither more nor less.
func (w *World) nodesRest(s *store.Snapshot) string {
	for _, n := range w.nodes {
		runs := map[string]bool{}
		for _, l := range n.Locals() {
			for _, t := range l.Tasks {
				if x := n.Runs[t.Key()]; x != nil && x.Exit == nil && t.Status.Phase == taskmachine.Running {
					runs[l.Alloc.ID] = true
				}
			}
		}
		for key, x := range n.Runs {
			if x.Exit == nil && !runs[key[:36]] {
				return fmt.Sprintf("on %s runs %s, which its agent does not know", n.Spec.Name, key)
			}
		}
		for id := range runs {
			if a := s.Allocation(id); a == nil || a.Terminal() {
				return fmt.Sprintf("on %s runs %s, which has ended", n.Spec.Name, id)
			}
		}
		for a := range s.AllocationsByNode(n.Spec.ID) {
			if !a.Terminal() && !runs[a.ID] {
				return fmt.Sprintf("allocation %s should run on %s and does not", a.ID, n.Spec.Name)
			}
		}
	}
	return ""
}

// claimsRest: what was handed out is recorded, or gone.
func (w *World) claimsRest(s *store.Snapshot) string {
	for id := range w.clients.handed {
		if a := s.Allocation(id); a != nil && !a.Terminal() && a.Claim == nil {
			return fmt.Sprintf("runner %s was handed out, and is warm in the state", id)
		}
	}
	for _, s := range w.servers {
		if claims, releases := s.runners.core.Unrecorded(); claims+releases > 0 {
			return fmt.Sprintf("%d claims and %d releases are not recorded at %s", claims, releases, s)
		}
	}
	for j := range s.Jobs(drover.DefaultNamespace, environment.JobPrefix) {
		if d := j.TaskGroups[0].Pool.Demand; d != 0 {
			return fmt.Sprintf("nobody waits for runners of %s, and its demand is %d", j.ID, d)
		}
	}
	return ""
}
