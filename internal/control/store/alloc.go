package store

import "drover"

// PutAllocation stores the allocation and keeps its job's summary and its node's usage.
func (t *Txn) PutAllocation(a *drover.Allocation) {
	old := t.Allocation(a.ID)
	t.insert(TableAllocs, a)
	t.use(old, -1)
	t.use(a, 1)
	t.jobRow(a.Namespace, a.JobID).countAlloc(old, a, t.index)
	t.touchAlloc(a)
	if old == nil || old.AllocModifyIndex != a.AllocModifyIndex {
		t.changed(a)
		t.touchNodeAllocs(a.NodeID)
	}
}

// DeleteAllocation forgets the allocation. Its job's summary keeps it.
func (t *Txn) DeleteAllocation(a *drover.Allocation) {
	t.remove(TableAllocs, a)
	t.use(a, -1)
	r := t.jobRow(a.Namespace, a.JobID)
	r.forgetAlloc(a, t.index)
	t.dropIfUnused(r)
	t.touchAlloc(a)
	t.touchNodeAllocs(a.NodeID)
}

func (t *Txn) touchAlloc(a *drover.Allocation) {
	t.touch(TableAllocs, a.ID)
	t.touched[watchKey{WatchJobAllocs, JobKey(a.Namespace, a.JobID)}] = struct{}{}
	t.touch(TableJobSummaries, JobKey(a.Namespace, a.JobID))
}

func (t *Txn) touchNodeAllocs(nodeID string) {
	if nodeID != "" {
		t.touched[watchKey{WatchNodeAllocs, nodeID}] = struct{}{}
	}
}
