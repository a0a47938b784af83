package store

import (
	"iter"

	"drover"
)

// usageRow is what allocations hold on a node.
type usageRow struct {
	NodeID string
	Used   drover.Capacity
	Allocs int // those that hold something
}

// Used returns what allocations hold on the node: those that the node has not reported as ended.
func (r *reader) Used(nodeID string) drover.Capacity {
	if u := get[usageRow](r, tableUsage, term(nodeID)); u != nil {
		return u.Used
	}
	return drover.Capacity{}
}

// NodesUsed yields all nodes by id with what allocations hold on each: one walk over both tables instead of a look-up
// a node.
func (r *reader) NodesUsed() iter.Seq2[*drover.Node, drover.Capacity] {
	return func(yield func(*drover.Node, drover.Capacity) bool) {
		next, stop := iter.Pull(scan[usageRow](r, tableUsage, indexID, ""))
		defer stop()
		u, ok := next()
		for n := range r.Nodes("") {
			for ok && u.NodeID < n.ID {
				u, ok = next()
			}
			var used drover.Capacity
			if ok && u.NodeID == n.ID {
				used = u.Used
			}
			if !yield(n, used) {
				return
			}
		}
	}
}

// HoldingAllocs returns how many allocations hold resources of the node.
func (r *reader) HoldingAllocs(nodeID string) int {
	if u := get[usageRow](r, tableUsage, term(nodeID)); u != nil {
		return u.Allocs
	}
	return 0
}

func (t *Txn) use(a *drover.Allocation, sign int64) {
	if a == nil || a.NodeID == "" || !a.HoldsResources() {
		return
	}
	u := t.usage[a.NodeID]
	if u == nil {
		u = &usageRow{NodeID: a.NodeID}
		if old := get[usageRow](&t.reader, tableUsage, term(a.NodeID)); old != nil {
			*u = *old
		}
		t.usage[a.NodeID] = u
	}
	c := a.AllocatedResources.Used()
	if sign < 0 {
		u.Used, u.Allocs = u.Used.Sub(c), u.Allocs-1
	} else {
		u.Used, u.Allocs = u.Used.Add(c), u.Allocs+1
	}
}
