package fsm

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/invariant"
)

// This file is what the state checks of the ten invariants of ARCHITECTURE.md. The checks change nothing, except that a
// second handout is refused.

// checkStays: an allocation that is updated in place stays on its node.
func checkStays(old, a *drover.Allocation) {
	if old.NodeID != a.NodeID {
		invariant.Breach(invariant.OneNode, a.ID, "a plan moves it from node %s to %s", old.NodeID, a.NodeID)
	}
}

// checkReport: no node runs what is placed on another, and what failed has not completed.
func checkReport(a *drover.Allocation, nodeID string, u *exchange.AllocUpdate) {
	if a.NodeID != nodeID && u.ClientStatus == drover.AllocClientRunning {
		invariant.Breach(invariant.OneNode, a.ID, "it is placed on node %s, and node %s says that it runs there", a.NodeID, nodeID)
	}
	if u.ClientStatus != drover.AllocClientComplete {
		return
	}
	for name, t := range u.TaskStates {
		if t.Failed {
			invariant.Breach(invariant.FailureIsNoSuccess, a.ID, "node %s reports it as complete, and task %s failed", nodeID, name)
			return
		}
	}
}

// checkCapacity: what a plan placed fits on its nodes. The allocations of a node stand together in a plan.
func (e *entry) checkCapacity(placed []*drover.Allocation) {
	checked := ""
	for _, a := range placed {
		if a.NodeID == checked {
			continue
		}
		checked = a.NodeID
		n := e.txn.Node(a.NodeID)
		if n == nil || n.NodeResources == nil {
			continue
		}
		used, total := e.txn.Used(a.NodeID), n.Total()
		if ok, what := used.Fits(total); !ok {
			invariant.Breach(invariant.WithinCapacity, n.ID, "index %d: %s: %v are used of %v", e.index, what, used, total)
		}
	}
}

// handedOutAgain reports whether the runner belongs to an earlier claimer. Its claimer may record it again, with another
// idle timeout; the moment of the claim stays.
func handedOutAgain(a *drover.Allocation, c *command.RunnerClaim) bool {
	if a.Claim == nil || a.Claim.RunnerID != c.Claim.RunnerID || a.Claim.ClaimedAt == c.Claim.ClaimedAt {
		return false
	}
	invariant.Breach(invariant.HandedOutOnce, a.ID, "it was claimed at %d, and is claimed again at %d", a.Claim.ClaimedAt, c.Claim.ClaimedAt)
	return true
}
