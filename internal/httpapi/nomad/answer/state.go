package answer

import (
	"iter"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/volume"
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
	JobReader
	NodeReader
	AllocationReader
	EvaluationReader
	ServiceReader
	VolumeReader
	ClusterReader
	BoundReader
}

// JobReader reads jobs, and what is kept of each.
type JobReader interface {
	Job(namespace, id string) *drover.Job
	Jobs(namespace, prefix string) iter.Seq[*drover.Job]
	JobVersions(namespace, id string) []*drover.Job
	JobSummary(namespace, id string) *drover.JobSummary
	JobSubmission(namespace, id string, version uint64) *drover.JobSubmission
	ScalingEvents(namespace, id string) *drover.JobScalingEvents
}

// NodeReader reads nodes.
type NodeReader interface {
	Node(id string) *drover.Node
	Nodes(prefix string) iter.Seq[*drover.Node]
}

// AllocationReader reads allocations.
type AllocationReader interface {
	Allocation(id string) *drover.Allocation
	Allocations(namespace, prefix string) iter.Seq[*drover.Allocation]
	AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
	AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation]
	AllocationsByEval(evalID string) iter.Seq[*drover.Allocation]
}

// EvaluationReader reads evaluations and deployments.
type EvaluationReader interface {
	Evaluation(id string) *drover.Evaluation
	Evaluations(namespace, prefix string) iter.Seq[*drover.Evaluation]
	EvaluationsByJob(namespace, id string) iter.Seq[*drover.Evaluation]
	Deployment(id string) *drover.Deployment
	Deployments(namespace, prefix string) iter.Seq[*drover.Deployment]
	DeploymentsByJob(namespace, id string) iter.Seq[*drover.Deployment]
}

// ServiceReader reads where services are found.
type ServiceReader interface {
	// Registrations yields those of a service, or of all with name "", ordered by name and id; namespace "*" means all.
	Registrations(namespace, name string) iter.Seq[*service.Registration]
	RegistrationsOf(allocID string) iter.Seq[*service.Registration]
}

// VolumeReader reads host volumes and their claims.
type VolumeReader interface {
	HostVolume(id string) *volume.HostVolume
	HostVolumes(namespace, prefix string) iter.Seq[*volume.HostVolume]
	VolumeClaims(namespace, prefix string) iter.Seq[*volume.HostVolumeClaim]
}

// ClusterReader reads what belongs to the cluster.
type ClusterReader interface {
	Namespace(name string) *tenancy.Namespace
	Namespaces() iter.Seq[*tenancy.Namespace]
	NodePool(name string) *drover.NodePool
	NodePools() iter.Seq[*drover.NodePool]
	SchedulerConfig() *drover.SchedulerConfiguration
	Revocations() iter.Seq[*clusternoun.Revocation]
}

// BoundReader reads what bounds namespaces and jobs: quotas and how much of them is used, and admission rules.
type BoundReader interface {
	Quota(name string) *tenancy.QuotaSpec
	Quotas(prefix string) iter.Seq[*tenancy.QuotaSpec]
	QuotaUsage(name string, day int64) *tenancy.QuotaUsage
	AdmissionRule(name string) *drover.AdmissionRule
	AdmissionRules() iter.Seq[*drover.AdmissionRule]
}
