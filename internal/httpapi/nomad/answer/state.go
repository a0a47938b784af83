package answer

import (
	"iter"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
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
	Revocations() iter.Seq[*clusternoun.Revocation]
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
	Registrations(namespace, name string) iter.Seq[*drover.ServiceRegistration]
	RegistrationsOf(allocID string) iter.Seq[*drover.ServiceRegistration]
}

// VolumeReader reads host volumes and their claims.
type VolumeReader interface {
	HostVolume(id string) *drover.HostVolume
	HostVolumes(namespace, prefix string) iter.Seq[*drover.HostVolume]
	VolumeClaims(namespace, prefix string) iter.Seq[*drover.HostVolumeClaim]
}

// ClusterReader reads what belongs to the cluster.
type ClusterReader interface {
	Namespace(name string) *drover.Namespace
	Namespaces() iter.Seq[*drover.Namespace]
	NodePool(name string) *drover.NodePool
	NodePools() iter.Seq[*drover.NodePool]
	SchedulerConfig() *drover.SchedulerConfiguration
	Quota(name string) *drover.QuotaSpec
	Quotas(prefix string) iter.Seq[*drover.QuotaSpec]
	AdmissionRule(name string) *drover.AdmissionRule
	AdmissionRules() iter.Seq[*drover.AdmissionRule]
	QuotaUsage(name string, day int64) *drover.QuotaUsage
}
