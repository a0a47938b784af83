package fsm

import (
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/id"
)

// putNodeEvals stores the evaluations that a command has because of what it changed of nodes. Where a node can be used now, the
// system jobs that none of them is of get one. Such a job was registered after the command was made, and was evaluated before the
// node could be used. Their ids follow from the entry, so that all servers have the same. now is in unix ns.
func (e *entry) putNodeEvals(evals []*drover.Evaluation, now int64, nodeIDs ...string) {
	e.putEvals(evals)
	if cluster.VersionOf(e.txn.Cluster()) < 3 { // older servers apply it without
		return
	}
	var has map[drover.NamespacedID]bool
	for _, nodeID := range nodeIDs {
		n := e.txn.Node(nodeID)
		if n == nil || !n.Ready() {
			continue
		}
		if has == nil {
			has = make(map[drover.NamespacedID]bool, len(evals))
			for _, ev := range evals {
				has[drover.NamespacedID{Namespace: ev.Namespace, ID: ev.JobID}] = true
			}
		}
		for j := range e.txn.Jobs("*", "") {
			if has[j.Key()] || !trigger.Wants(j, n) {
				continue
			}
			has[j.Key()] = true
			ids := late(fmt.Sprintf("%d %s %s/%s", e.index, nodeID, j.Namespace, j.ID))
			ev := trigger.Maker{IDs: ids, Now: now}.Job(j, drover.TriggerNodeUpdate)
			ev.NodeID = nodeID
			e.putEval(*ev)
		}
	}
}

// late is the one id that its text gives.
type late string

// New implements id.Source.
func (l late) New() string { return id.Named(string(l)) }
