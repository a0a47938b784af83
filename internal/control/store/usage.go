package store

import "drover"

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
