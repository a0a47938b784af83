package store

import (
	"iter"
	"maps"

	"github.com/drover-project/drover"
)

// The methods in this file are for writing and reading the snapshot on disk.

// TableIndexes returns the indexes of all tables that were touched.
func (r *reader) TableIndexes() map[string]uint64 { return maps.Clone(r.tables) }

// JobRows yields what is kept of each job, by namespace and id. Do not change it.
func (r *reader) JobRows() iter.Seq[*JobRow] { return scan[JobRow](r, TableJobSummaries, indexID, "") }

// AllJobVersions yields the versions of all jobs, by namespace and id, the newest first.
func (r *reader) AllJobVersions() iter.Seq[*drover.Job] {
	return scan[drover.Job](r, TableJobVersions, indexID, "")
}

// AllScalingEvents yields the scaling events of all jobs, by namespace and id.
func (r *reader) AllScalingEvents() iter.Seq[*drover.JobScalingEvents] {
	return scan[drover.JobScalingEvents](r, TableScalingEvents, indexID, "")
}

// RestoreScalingEvents stores the scaling events of a job.
func (t *Txn) RestoreScalingEvents(e *drover.JobScalingEvents) { t.insert(TableScalingEvents, e) }

// RestoreTables sets the tables' indexes.
func (t *Txn) RestoreTables(indexes map[string]uint64) {
	clear(t.tables)
	maps.Copy(t.tables, indexes)
}

// RestoreJob stores the current version of a job.
func (t *Txn) RestoreJob(j *drover.Job) { t.insert(TableJobs, j) }

// RestoreJobVersion stores a version of a job.
func (t *Txn) RestoreJobVersion(j *drover.Job) { t.insert(TableJobVersions, j) }

// RestoreJobRow stores what is kept of a job.
func (t *Txn) RestoreJobRow(r *JobRow) { t.insert(TableJobSummaries, r) }

// RestoreNode stores a node.
func (t *Txn) RestoreNode(n *drover.Node) { t.insert(TableNodes, n) }

// RestoreAllocation stores an allocation and counts what it uses. Its job's row must be there.
func (t *Txn) RestoreAllocation(a *drover.Allocation) {
	t.allocs.put(a)
	t.place(nil, a)
	t.jobRow(a.Namespace, a.JobID).allocs.move(nil, a, done)
	t.changed(a)
}

// RestoreEvaluation stores an evaluation.
func (t *Txn) RestoreEvaluation(e *drover.Evaluation) { t.insert(TableEvals, e) }

// RestoreDeployment stores a deployment.
func (t *Txn) RestoreDeployment(d *drover.Deployment) { t.insert(TableDeployments, d) }

// RestoreNamespace stores a namespace.
func (t *Txn) RestoreNamespace(n *drover.Namespace) { t.insert(TableNamespaces, n) }

// RestoreNodePool stores a node pool.
func (t *Txn) RestoreNodePool(p *drover.NodePool) { t.insert(TableNodePools, p) }

// RestoreSchedulerConfig stores the scheduler's configuration.
func (t *Txn) RestoreSchedulerConfig(c *drover.SchedulerConfiguration) {
	t.insert(TableSchedulerConfig, c)
}
