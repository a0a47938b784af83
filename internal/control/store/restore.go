package store

import (
	"iter"
	"maps"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/tenancy"
)

// The methods in this file are for writing and reading the snapshot on disk.

// TableIndexes returns the indexes of all tables that were touched.
func (r *reader) TableIndexes() map[string]uint64 { return maps.Clone(r.tables) }

// JobRows yields what is kept of each job, by namespace and id. Do not change it.
func (r *reader) JobRows() iter.Seq[*JobRow] {
	return scan[JobRow](r, tables.JobSummaries, indexID, "")
}

// AllJobVersions yields the versions of all jobs, by namespace and id, the newest first.
func (r *reader) AllJobVersions() iter.Seq[*drover.Job] {
	return scan[drover.Job](r, tables.JobVersions, indexID, "")
}

// AllScalingEvents yields the scaling events of all jobs, by namespace and id.
func (r *reader) AllScalingEvents() iter.Seq[*drover.JobScalingEvents] {
	return scan[drover.JobScalingEvents](r, tables.ScalingEvents, indexID, "")
}

// RestoreScalingEvents stores the scaling events of a job.
func (t *Txn) RestoreScalingEvents(e *drover.JobScalingEvents) { t.insert(tables.ScalingEvents, e) }

// RestoreTables sets the tables' indexes.
func (t *Txn) RestoreTables(indexes map[string]uint64) {
	clear(t.tables)
	maps.Copy(t.tables, indexes)
}

// RestoreJob stores the current version of a job.
func (t *Txn) RestoreJob(j *drover.Job) { t.insert(tables.Jobs, j) }

// RestoreJobVersion stores a version of a job.
func (t *Txn) RestoreJobVersion(j *drover.Job) { t.insert(tables.JobVersions, j) }

// RestoreJobRow stores what is kept of a job.
func (t *Txn) RestoreJobRow(r *JobRow) { t.insert(tables.JobSummaries, r) }

// RestoreNode stores a node.
func (t *Txn) RestoreNode(n *drover.Node) { t.insert(tables.Nodes, n) }

// RestoreAllocation stores an allocation, counts what it uses and registers its services. Its job's row and its node must be there.
func (t *Txn) RestoreAllocation(a *drover.Allocation) {
	t.allocs.put(a)
	t.place(nil, a)
	t.charge(nil, a)
	t.jobRow(a.Namespace, a.JobID).allocs.move(nil, a, done)
	t.register(nil, a)
	t.changed(a)
}

// RestoreEvaluation stores an evaluation.
func (t *Txn) RestoreEvaluation(e *drover.Evaluation) { t.insert(tables.Evals, e) }

// RestoreDeployment stores a deployment.
func (t *Txn) RestoreDeployment(d *drover.Deployment) { t.insert(tables.Deployments, d) }

// RestoreNamespace stores a namespace.
func (t *Txn) RestoreNamespace(n *tenancy.Namespace) { t.insert(tables.Namespaces, n) }

// RestoreNodePool stores a node pool.
func (t *Txn) RestoreNodePool(p *drover.NodePool) { t.insert(tables.NodePools, p) }

// RestoreCluster stores what the servers are together.
func (t *Txn) RestoreCluster(c *cluster.State) { t.insert(tables.Cluster, c) }

// RestoreLessee stores a server that warm runners are leased to.
func (t *Txn) RestoreLessee(l *cluster.Lessee) { t.insert(tables.Lessees, l) }

// RestoreAutopilot stores how the servers are kept healthy.
func (t *Txn) RestoreAutopilot(a *cluster.Autopilot) { t.insert(tables.Autopilot, a) }

// RestoreSchedulerConfig stores the scheduler's configuration.
func (t *Txn) RestoreSchedulerConfig(c *drover.SchedulerConfiguration) {
	t.insert(tables.SchedulerConfig, c)
}
