package planner

import (
	"maps"
	"slices"

	"github.com/drover-project/drover"
)

// Check says which parts of a plan can be committed on the state of s. The parts of a node stand or fall together. A placement
// needs a ready node, an update in place an allocation that has not ended. Both need room for what they ask: capacity, ports,
// cores, devices, NodeMaxAllocs, and what is left of their namespace's quota. A stop needs an allocation that was not handed out to
// a claimer since the plan was made. A stopped allocation still holds its place until its node says that it ended. Refused nodes are
// in RejectedNodes, but for those that only the quota refuses, and RefreshIndex is then set. With AllAtOnce everything is refused if
// anything is.
func Check(s Snapshot, plan *drover.Plan) drover.PlanResult {
	return check(&view{Snapshot: s}, plan)
}

// check is Check over a view, which may also hold plans that were accepted and are not in the state yet.
func check(v *view, plan *drover.Plan) drover.PlanResult {
	r := drover.PlanResult{
		NodeUpdate: map[string][]*drover.Allocation{}, NodeAllocation: map[string][]*drover.Allocation{},
		NodePreemptions: map[string][]*drover.Allocation{}, Deployment: plan.Deployment,
	}
	stale, bill := false, v.newBill(plan)
	for _, id := range nodesOf(plan) {
		switch verdict := v.checkNode(id, plan); verdict {
		case refused:
			r.RejectedNodes = append(r.RejectedNodes, id)
		case raced:
			stale = true
			accept(r.NodeUpdate, id, v.unclaimedStops(plan.NodeUpdate[id]))
		default:
			if !bill.take(id, plan.NodeAllocation[id]) {
				stale = true // not the node's fault
				continue
			}
			accept(r.NodeUpdate, id, plan.NodeUpdate[id])
			accept(r.NodeAllocation, id, plan.NodeAllocation[id])
			accept(r.NodePreemptions, id, plan.NodePreemptions[id])
		}
	}
	if len(r.RejectedNodes) == 0 && !stale {
		bill.settle()
		return r
	}
	if plan.AllAtOnce {
		r = drover.PlanResult{RejectedNodes: r.RejectedNodes}
	} else {
		bill.settle()
	}
	r.RefreshIndex = max(v.Index(), 1)
	return r
}

// accept keeps the maps of a result free of nodes without a part, so that an empty result has empty maps.
func accept(into map[string][]*drover.Allocation, nodeID string, allocs []*drover.Allocation) {
	if len(allocs) > 0 {
		into[nodeID] = allocs
	}
}

// nodesOf returns the nodes that the plan touches, sorted.
func nodesOf(plan *drover.Plan) []string {
	set := map[string]struct{}{}
	for _, m := range []map[string][]*drover.Allocation{plan.NodeUpdate, plan.NodeAllocation, plan.NodePreemptions} {
		for id := range m {
			set[id] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// verdict is what becomes of a plan's part for one node.
type verdict uint8

const (
	accepted verdict = iota
	refused          // no room, or not the node that the scheduler saw
	raced            // a runner to be stopped or changed was claimed meanwhile
)

// checkNode judges one node's part. Claims are looked at first: after a claim the placements may be pointless as well,
// so none of them is committed.
func (v *view) checkNode(id string, plan *drover.Plan) verdict {
	for _, list := range [][]*drover.Allocation{plan.NodeUpdate[id], plan.NodePreemptions[id], plan.NodeAllocation[id]} {
		for _, a := range list {
			if v.claimedSince(a) {
				return raced
			}
		}
	}
	if len(plan.NodeAllocation[id]) > 0 && !v.placeable(id, plan.NodeAllocation[id]) {
		return refused
	}
	return accepted
}

// claimedSince reports whether a, as the scheduler saw it, was a warm runner that now belongs to someone.
func (v *view) claimedSince(a *drover.Allocation) bool {
	stored := v.Allocation(a.ID)
	return stored != nil && stored.Claim != nil && a.Claim == nil
}

// unclaimedStops returns the stops that are still right. The input is not changed, because the plan belongs to its
// worker.
func (v *view) unclaimedStops(list []*drover.Allocation) []*drover.Allocation {
	return slices.DeleteFunc(slices.Clone(list), v.claimedSince)
}

// placeable reports whether the node can take all of list.
func (v *view) placeable(id string, list []*drover.Allocation) bool {
	node := v.Node(id)
	if node == nil {
		return false
	}
	fresh := 0
	for _, a := range list {
		stored := v.Allocation(a.ID)
		switch {
		case stored == nil:
			fresh++
		case stored.ClientTerminal() || stored.NodeID != id:
			return false
		}
	}
	if fresh > 0 && !node.Ready() {
		return false
	}
	return v.fits(node, list, fresh)
}
