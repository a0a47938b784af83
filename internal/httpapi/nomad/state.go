package nomad

import (
	"iter"

	"github.com/drover-project/drover"
)

// State is what is known of the cluster.
type State interface {
	// Snapshot returns a consistent view.
	Snapshot() Snapshot
	// Watch returns a channel that is closed by the next commit which touches the row (key "" = the table).
	Watch(table, key string) <-chan struct{}
}

// Snapshot is the part of control/store's Snapshot that the face reads; single reads return nil for the unknown.
type Snapshot interface {
	Index() uint64
	TableIndex(table string) uint64
	Job(namespace, id string) *drover.Job
	Jobs(namespace, prefix string) iter.Seq[*drover.Job]
	JobVersions(namespace, id string) []*drover.Job
	JobSummary(namespace, id string) *drover.JobSummary
	JobSubmission(namespace, id string, version uint64) *drover.JobSubmission
	ScalingEvents(namespace, id string) *drover.JobScalingEvents
	Node(id string) *drover.Node
	Nodes(prefix string) iter.Seq[*drover.Node]
	Allocation(id string) *drover.Allocation
	Allocations(namespace, prefix string) iter.Seq[*drover.Allocation]
	AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
	AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation]
	AllocationsByEval(evalID string) iter.Seq[*drover.Allocation]
	Evaluation(id string) *drover.Evaluation
	Evaluations(namespace, prefix string) iter.Seq[*drover.Evaluation]
	EvaluationsByJob(namespace, id string) iter.Seq[*drover.Evaluation]
	Deployment(id string) *drover.Deployment
	Deployments(namespace, prefix string) iter.Seq[*drover.Deployment]
	DeploymentsByJob(namespace, id string) iter.Seq[*drover.Deployment]
	Namespace(name string) *drover.Namespace
	Namespaces() iter.Seq[*drover.Namespace]
	NodePool(name string) *drover.NodePool
	NodePools() iter.Seq[*drover.NodePool]
	SchedulerConfig() *drover.SchedulerConfiguration
}

// The tables whose indexes are watched and shown.
const (
	tableJobs        = "jobs"
	tableSummaries   = "job_summaries"
	tableNodes       = "nodes"
	tableAllocs      = "allocs"
	tableEvals       = "evals"
	tableDeployments = "deployments"
	tableNamespaces  = "namespaces"
	tablePools       = "node_pools"
	tableScheduler   = "scheduler_config"
	tableSubmissions = "job_submissions"
)

// What can be watched besides tables: the allocations and the evaluations of one job.
const (
	watchJobAllocs = "allocs_by_job"
	watchJobEvals  = "evals_by_job"
)

// jobKey is the key of a job in Watch.
func jobKey(namespace, id string) string { return namespace + "\x00" + id }
