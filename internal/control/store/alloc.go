package store

import (
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
)

// PutAllocation stores the allocation and keeps its job's summary and its node's usage.
func (t *Txn) PutAllocation(a *drover.Allocation) {
	old := t.Allocation(a.ID)
	t.allocs.put(a)
	t.place(old, a)
	t.charge(old, a)
	r := t.jobRow(a.Namespace, a.JobID)
	r.allocs.move(old, a, done)
	r.countAlloc(old, a, t.index)
	t.register(old, a)
	t.touchAlloc(a)
	if old == nil || old.AllocModifyIndex != a.AllocModifyIndex {
		t.changed(a)
		t.touchNodeAllocs(a.NodeID)
	}
}

// DeleteAllocation forgets the allocation. Its job's summary keeps it.
func (t *Txn) DeleteAllocation(a *drover.Allocation) {
	t.allocs.remove(a.ID)
	t.place(a, nil)
	t.charge(a, nil)
	r := t.jobRow(a.Namespace, a.JobID)
	r.allocs.move(a, nil, done)
	r.forgetAlloc(a, t.index)
	t.dropIfUnused(r)
	t.register(a, nil)
	t.touchAlloc(a)
	t.touchNodeAllocs(a.NodeID)
}

// AllocationsByJob is the Snapshot's, inside the transaction. What it yields may be changed after it ended.
func (t *Txn) AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation] {
	s := t.jobAllocs(namespace, id)
	if r := t.jobs[drover.NamespacedID{Namespace: namespace, ID: id}]; r != nil {
		s = r.allocs
	}
	return concat(s.open, s.closed)
}

// OpenByJob yields those of the job's allocations that are not history, with what the transaction changed.
func (t *Txn) OpenByJob(namespace, id string) iter.Seq[*drover.Allocation] {
	s := t.jobAllocs(namespace, id)
	if r := t.jobs[drover.NamespacedID{Namespace: namespace, ID: id}]; r != nil {
		s = r.allocs
	}
	return s.open.scan("")
}

func (t *Txn) touchAlloc(a *drover.Allocation) {
	t.touch(tables.Allocs, a.ID)
	t.touched[watchKey{tables.JobAllocs, tables.JobKey(a.Namespace, a.JobID)}] = struct{}{}
	t.touch(tables.JobSummaries, tables.JobKey(a.Namespace, a.JobID))
}

func (t *Txn) touchNodeAllocs(nodeID string) {
	if nodeID != "" {
		t.touched[watchKey{tables.NodeAllocs, nodeID}] = struct{}{}
	}
}
