package nodes

import (
	"context"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
)

// leftKey is what the drain of a node that leaves has in its meta, so that it is known when the node is back.
const leftKey = "drover.drain_on_shutdown"

// DrainSelf implements exchange.Drains. Any server can: the log is written by the leader.
func (f *Front) DrainSelf(ctx context.Context, nodeID string, spec *drover.DrainSpec) error {
	if f.deps.Drain == nil {
		return drover.Errorf(drover.NotImplemented, "this server drains no node that leaves")
	}
	if f.deps.Servers.Clustered() {
		if err := f.Current(ctx); err != nil {
			return err
		}
	}
	n := f.deps.Store.Snapshot().Node(nodeID)
	if n == nil {
		return drover.Errorf(drover.NotFound, "node not found")
	}
	idle := n.SchedulingEligibility == drover.NodeIneligible
	if spec != nil {
		if n.DrainStrategy != nil { // a person drains it already, who decides what comes after
			return nil
		}
		left := drover.NodeEligible
		if idle && (!away(n) || n.LastDrain.Meta[leftKey] != drover.NodeEligible) { // it may leave again before it said that it is back
			left = drover.NodeIneligible
		}
		return f.deps.Drain(ctx, drover.DrainRequest{NodeID: nodeID, Spec: spec, Meta: map[string]string{leftKey: left}})
	}
	if !away(n) {
		return nil
	}
	eligible := n.LastDrain.Meta[leftKey] == drover.NodeEligible
	if n.DrainStrategy == nil && (!eligible || !idle) { // it ended, and nothing is to be changed
		return nil
	}
	return f.deps.Drain(ctx, drover.DrainRequest{NodeID: nodeID, MarkEligible: eligible})
}

// away reports whether the node had itself drained, and nobody decided since whether it takes work. That could be a person who
// ended the drain or set whether it does, or the node that is back.
func away(n *drover.Node) bool {
	last := n.LastDrain
	if last == nil || last.Meta[leftKey] == "" {
		return false
	}
	decided := false
	for _, e := range n.Events {
		switch {
		case e.Subsystem == command.DrainEvent:
			decided = e.Message != command.DrainComplete
		case strings.HasPrefix(e.Message, command.MarkedAs):
			decided = true
		}
	}
	return n.DrainStrategy != nil || last.Status == "complete" && !decided
}

var _ exchange.Drains = (*Front)(nil)
