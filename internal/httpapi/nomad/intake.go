package nomad

import (
	"context"

	"github.com/drover-project/drover"
)

// The write side, by the handlers that need it: each method is one use case, and control/intake has them all. Errors carry
// drover codes and Nomad's texts ("job not found").

// JobWriter changes jobs.
type JobWriter interface {
	RegisterJob(ctx context.Context, r drover.RegisterRequest) (drover.Outcome, error)
	DeregisterJob(ctx context.Context, r drover.DeregisterRequest) (drover.Outcome, error)
	// ValidateJob reports everything that would keep the job from being registered, joined.
	ValidateJob(ctx context.Context, job *drover.Job) error
	PlanJob(ctx context.Context, job *drover.Job, diff bool) (drover.Preview, error)
	EvaluateJob(ctx context.Context, namespace, id string, forceReschedule bool) (drover.Outcome, error)
	ScaleJob(ctx context.Context, r drover.ScaleRequest) (drover.Outcome, error)
	DispatchJob(ctx context.Context, r drover.DispatchRequest) (drover.Outcome, error)
	ForcePeriodic(ctx context.Context, namespace, id string) (drover.Outcome, error)
	StopAllocation(ctx context.Context, id string, noShutdownDelay, reschedule bool) (drover.Outcome, error)
}

// VersionWriter changes what is said of a job's versions.
type VersionWriter interface {
	RevertJob(ctx context.Context, r drover.RevertRequest) (drover.Outcome, error)
	SetJobStable(ctx context.Context, namespace, id string, version uint64, stable bool) (drover.Outcome, error)
	TagJobVersion(ctx context.Context, r drover.TagRequest) (drover.Outcome, error)
	UntagJobVersion(ctx context.Context, namespace, id, name string) (drover.Outcome, error)
}

// NodeWriter changes nodes.
type NodeWriter interface {
	SetEligibility(ctx context.Context, nodeID, eligibility string) (drover.Outcome, error)
	DrainNode(ctx context.Context, r drover.DrainRequest) (drover.Outcome, error)
	EvaluateNode(ctx context.Context, nodeID string) (drover.Outcome, error)
	PurgeNode(ctx context.Context, nodeID string) (drover.Outcome, error)
	// SetNodeMeta sets keys of a node's metadata over the node's own; nil removes one.
	SetNodeMeta(ctx context.Context, nodeID string, change map[string]*string) (drover.Outcome, error)
}

// DeploymentWriter steers deployments.
type DeploymentWriter interface {
	// PromoteDeployment promotes the canaries of the groups; of all groups if there are none given.
	PromoteDeployment(ctx context.Context, id string, groups []string) (drover.Outcome, error)
	FailDeployment(ctx context.Context, id string) (drover.Outcome, error)
	PauseDeployment(ctx context.Context, id string, pause bool) (drover.Outcome, error)
	UnblockDeployment(ctx context.Context, id string) (drover.Outcome, error)
	SetAllocHealth(ctx context.Context, deploymentID string, healthy, unhealthy []string) (drover.Outcome, error)
}

// ClusterWriter changes what belongs to the cluster.
type ClusterWriter interface {
	UpsertNamespace(ctx context.Context, n *drover.Namespace) (drover.Outcome, error)
	DeleteNamespace(ctx context.Context, name string) (drover.Outcome, error)
	UpsertNodePool(ctx context.Context, p *drover.NodePool) (drover.Outcome, error)
	DeleteNodePool(ctx context.Context, name string) (drover.Outcome, error)
	// SetSchedulerConfig stores c; with cas only if the stored one's ModifyIndex is c's (updated says so).
	SetSchedulerConfig(ctx context.Context, c drover.SchedulerConfiguration, cas bool) (updated bool, o drover.Outcome, err error)
	// DeleteEvaluations forgets ended evaluations.
	DeleteEvaluations(ctx context.Context, ids []string) (drover.Outcome, error)
	CollectGarbage(ctx context.Context) error
	ReconcileSummaries(ctx context.Context) error
}

// Intake is what has every use case.
type Intake interface {
	JobWriter
	VersionWriter
	NodeWriter
	DeploymentWriter
	ClusterWriter
}
