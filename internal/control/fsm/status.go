package fsm

import (
	"cmp"
	"slices"

	"github.com/drover-project/drover"
)

// deriveStatuses sets the status of every job whose allocations, evaluations or deployments this entry changed.
func (e *entry) deriveStatuses() {
	touched := e.txn.TouchedJobs()
	for _, c := range e.deployments.list {
		touched = append(touched, drover.NamespacedID{Namespace: c.now.Namespace, ID: c.now.JobID})
	}
	slices.SortFunc(touched, func(a, b drover.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
	for _, key := range slices.Compact(touched) {
		old := e.txn.Job(key.Namespace, key.ID)
		if old == nil {
			continue
		}
		status := e.jobStatus(old)
		if status == old.Status {
			continue
		}
		j := *old
		j.Status, j.ModifyIndex = status, e.index
		e.putJob(&j)
		e.countChild(&j, old, &j)
	}
}

// jobStatus is Nomad's rule. A job with a live allocation or a deployment under way is running, one with an open
// evaluation is pending, and one that had either is dead, stopped or not. Those that only make others' work (system,
// periodic and parameterized jobs) run until they are stopped.
func (e *entry) jobStatus(j *drover.Job) string {
	c := e.txn.JobCounts(j.Namespace, j.ID)
	switch {
	case j.Type == drover.JobTypeSystem || j.Periodical() || j.Parameterized():
		if j.Stop {
			return drover.JobStatusDead
		}
		return drover.JobStatusRunning
	case c.Live > 0 || e.deploying(j):
		return drover.JobStatusRunning
	case c.OpenEvals > 0:
		return drover.JobStatusPending
	case c.Allocs > 0 || c.Evals > 0 || j.Stop:
		return drover.JobStatusDead
	case j.Status == drover.JobStatusDead:
		return drover.JobStatusDead // what it had was only forgotten
	}
	return drover.JobStatusPending
}

// deploying reports whether a deployment of the job is under way. A stopped job's ends with the job's evaluation.
func (e *entry) deploying(j *drover.Job) bool {
	if j.Stop {
		return false
	}
	for d := range e.txn.DeploymentsByJob(j.Namespace, j.ID) {
		if d.Active() && d.JobCreateIndex == j.CreateIndex {
			return true
		}
	}
	return false
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

// childCount returns the counter of the status, so that callers can add to it. Every status that is neither running nor
// dead counts as pending.
func childCount(c *drover.JobChildrenSummary, status string) *int64 {
	switch status {
	case drover.JobStatusRunning:
		return &c.Running
	case drover.JobStatusDead:
		return &c.Dead
	}
	return &c.Pending
}
