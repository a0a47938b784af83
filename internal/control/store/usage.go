package store

import (
	"iter"

	"github.com/drover-project/drover"
)

// usageRow is what allocations hold on a node.
type usageRow struct {
	NodeID string
	Used   drover.Capacity
	// Changed is the newest AllocModifyIndex of an allocation that is or was on the node, since the last restart.
	Changed uint64
	allocs  split // open: those that have not ended
}

// Used returns what allocations hold on the node: those that the node has not reported as ended.
func (r *reader) Used(nodeID string) drover.Capacity {
	if u := get[usageRow](r, tableUsage, term(nodeID)); u != nil {
		return u.Used
	}
	return drover.Capacity{}
}

// Used returns what allocations hold on the node, with what the transaction changed.
func (t *Txn) Used(nodeID string) drover.Capacity {
	if u := t.usage[nodeID]; u != nil {
		return u.Used
	}
	return t.reader.Used(nodeID)
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

// place keeps what is known of the nodes on which old was and a is; each may be nil.
func (t *Txn) place(old, a *drover.Allocation) {
	if old != nil && a != nil && old.NodeID == a.NodeID {
		t.placeOn(a.NodeID, old, a)
		return
	}
	if old != nil {
		t.placeOn(old.NodeID, old, nil)
	}
	if a != nil {
		t.placeOn(a.NodeID, nil, a)
	}
}

func (t *Txn) placeOn(nodeID string, old, a *drover.Allocation) {
	if nodeID == "" {
		return
	}
	u := t.usageOf(nodeID)
	u.allocs.move(old, a, (*drover.Allocation).ClientTerminal)
	if old != nil && old.HoldsResources() {
		u.Used = u.Used.Sub(old.AllocatedResources.Used())
	}
	if a != nil && a.HoldsResources() {
		u.Used = u.Used.Add(a.AllocatedResources.Used())
	}
}

// usageOf returns the transaction's own copy.
func (t *Txn) usageOf(nodeID string) *usageRow {
	u := t.usage[nodeID]
	if u == nil {
		u = &usageRow{NodeID: nodeID}
		if old := get[usageRow](&t.reader, tableUsage, term(nodeID)); old != nil {
			*u = *old
			u.allocs = old.allocs.fork()
		}
		t.usage[nodeID] = u
	}
	return u
}

// changed notes that control changed an allocation of the node.
func (t *Txn) changed(a *drover.Allocation) {
	if a.NodeID != "" {
		u := t.usageOf(a.NodeID)
		u.Changed = max(u.Changed, a.AllocModifyIndex)
	}
}

// NodeChanged returns the newest AllocModifyIndex of the node's allocations; those that were forgotten count until the
// next restart.
func (r *reader) NodeChanged(nodeID string) uint64 {
	if u := get[usageRow](r, tableUsage, term(nodeID)); u != nil {
		return u.Changed
	}
	return 0
}
