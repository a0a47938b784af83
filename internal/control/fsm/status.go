package fsm

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/control/store"
)

// deriveStatuses sets the status of every job whose allocations or evaluations this entry changed.
func (e *entry) deriveStatuses() {
	touched := e.txn.TouchedJobs()
	slices.SortFunc(touched, func(a, b drover.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
	for _, key := range touched {
		old := e.txn.Job(key.Namespace, key.ID)
		if old == nil {
			continue
		}
		status := jobStatus(old, e.txn.JobCounts(key.Namespace, key.ID))
		if status == old.Status {
			continue
		}
		j := *old
		j.Status, j.ModifyIndex = status, e.index
		e.putJob(&j)
		e.countChild(&j, old, &j)
	}
}

// jobStatus is Nomad's rule, except that a service which was not stopped is never dead.
func jobStatus(j *drover.Job, c store.JobCounts) string {
	switch {
	case j.Type == drover.JobTypeSystem || j.Periodical() || j.Parameterized():
		if j.Stop {
			return drover.JobStatusDead
		}
		return drover.JobStatusRunning
	case c.Live > 0:
		return drover.JobStatusRunning
	case c.OpenEvals > 0:
		return drover.JobStatusPending
	case j.Stop:
		return drover.JobStatusDead
	case j.Type == drover.JobTypeService:
		return drover.JobStatusPending
	case c.Allocs > 0 || c.Evals > 0:
		return drover.JobStatusDead
	}
	return drover.JobStatusPending
}

// countChild keeps the parent's count of children: before nil = new, after nil = purged, which counts as dead.
func (e *entry) countChild(child, before, after *drover.Job) {
	if child.ParentID == "" || before != nil && after != nil && before.Status == after.Status {
		return
	}
	parent := e.txn.Job(child.Namespace, child.ParentID)
	if parent == nil {
		return
	}
	c := e.txn.Children(child.Namespace, child.ParentID)
	if before != nil {
		*childCount(&c, before.Status)--
	}
	if after != nil {
		*childCount(&c, after.Status)++
	} else {
		c.Dead++
	}
	e.txn.PutChildren(child.Namespace, child.ParentID, c)
}

func childCount(c *drover.JobChildrenSummary, status string) *int64 {
	switch status {
	case drover.JobStatusRunning:
		return &c.Running
	case drover.JobStatusDead:
		return &c.Dead
	}
	return &c.Pending
}
