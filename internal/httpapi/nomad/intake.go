package nomad

import (
	"context"
	"time"

	"github.com/drover-project/drover"
)

// Intake is the write side: each method is one use case of control/intake. Errors carry drover codes and Nomad's
// texts ("job not found").
type Intake interface {
	RegisterJob(ctx context.Context, r RegisterRequest) (Outcome, error)
	DeregisterJob(ctx context.Context, r DeregisterRequest) (Outcome, error)
	// ValidateJob reports everything that would keep the job from being registered, joined.
	ValidateJob(ctx context.Context, job *drover.Job) error
	PlanJob(ctx context.Context, job *drover.Job, diff bool) (Preview, error)
	EvaluateJob(ctx context.Context, namespace, id string, forceReschedule bool) (Outcome, error)
	ScaleJob(ctx context.Context, r ScaleRequest) (Outcome, error)
	RevertJob(ctx context.Context, r RevertRequest) (Outcome, error)
	SetJobStable(ctx context.Context, namespace, id string, version uint64, stable bool) (Outcome, error)
	TagJobVersion(ctx context.Context, r TagRequest) (Outcome, error)
	UntagJobVersion(ctx context.Context, namespace, id, name string) (Outcome, error)
	DispatchJob(ctx context.Context, r DispatchRequest) (Outcome, error)
	ForcePeriodic(ctx context.Context, namespace, id string) (Outcome, error)

	StopAllocation(ctx context.Context, id string, noShutdownDelay, reschedule bool) (Outcome, error)

	SetEligibility(ctx context.Context, nodeID, eligibility string) (Outcome, error)
	DrainNode(ctx context.Context, r DrainRequest) (Outcome, error)
	EvaluateNode(ctx context.Context, nodeID string) (Outcome, error)
	PurgeNode(ctx context.Context, nodeID string) (Outcome, error)
	// SetNodeMeta sets keys of a node's metadata over the node's own; nil removes one.
	SetNodeMeta(ctx context.Context, nodeID string, change map[string]*string) (Outcome, error)

	UpsertNamespace(ctx context.Context, n *drover.Namespace) (Outcome, error)
	DeleteNamespace(ctx context.Context, name string) (Outcome, error)
	UpsertNodePool(ctx context.Context, p *drover.NodePool) (Outcome, error)
	DeleteNodePool(ctx context.Context, name string) (Outcome, error)
	// SetSchedulerConfig stores c; with cas only if the stored one's ModifyIndex is c's (updated says so).
	SetSchedulerConfig(ctx context.Context, c drover.SchedulerConfiguration, cas bool) (updated bool, o Outcome, err error)

	// PromoteDeployment promotes the canaries of the groups; of all groups if there are none given.
	PromoteDeployment(ctx context.Context, id string, groups []string) (Outcome, error)
	FailDeployment(ctx context.Context, id string) (Outcome, error)
	PauseDeployment(ctx context.Context, id string, pause bool) (Outcome, error)
	UnblockDeployment(ctx context.Context, id string) (Outcome, error)
	SetAllocHealth(ctx context.Context, deploymentID string, healthy, unhealthy []string) (Outcome, error)

	// DeleteEvaluations forgets ended evaluations.
	DeleteEvaluations(ctx context.Context, ids []string) (Outcome, error)
	CollectGarbage(ctx context.Context) error
	ReconcileSummaries(ctx context.Context) error
}

// Outcome says what a write did. Each use case fills what applies to it.
type Outcome struct {
	Index                 uint64 // raft index of the write
	EvalID                string
	EvalIDs               []string // of several: nodes
	EvalCreateIndex       uint64
	JobModifyIndex        uint64
	JobCreateIndex        uint64
	NodeModifyIndex       uint64
	DeploymentModifyIndex uint64
	DispatchedJobID       string
	RevertedJobVersion    *uint64
	Warnings              string
}

// RegisterRequest registers or updates a job.
type RegisterRequest struct {
	Job            *drover.Job
	EnforceIndex   bool
	JobModifyIndex uint64 // with EnforceIndex: what it must be; 0 = the job must be new
	PreserveCounts bool
	// PreserveResources keeps the resources of the tasks that are there already.
	PreserveResources bool
	EvalPriority      int
	Submission        *drover.JobSubmission // optional: what the job was made of; not kept if it is larger than the server's limit
}

// DeregisterRequest stops a job.
type DeregisterRequest struct {
	Namespace, ID   string
	Purge           bool // forget it too
	NoShutdownDelay bool
	EvalPriority    int
}

// Preview is what registering a job would do.
type Preview struct {
	JobModifyIndex     uint64
	CreatedEvals       []*drover.Evaluation
	Diff               any // Nomad's JobDiff, if it was asked for
	Annotations        *drover.PlanAnnotations
	FailedTGAllocs     map[string]*drover.AllocationMetric
	NextPeriodicLaunch time.Time
	Warnings           string
}

// ScaleRequest sets the count of a group; nil Count only records the event.
type ScaleRequest struct {
	Namespace, ID, Group string
	Count                *int
	Message              string
	Error                bool
	Meta                 map[string]any
	JobModifyIndex       uint64 // if not 0: refuse unless it is the job's
}

// RevertRequest registers an older version again.
type RevertRequest struct {
	Namespace, ID       string
	Version             uint64
	EnforcePriorVersion *uint64
}

// TagRequest names a version.
type TagRequest struct {
	Namespace, ID     string
	Name, Description string
	Version           uint64
}

// DispatchRequest starts a child of a parameterized job.
type DispatchRequest struct {
	Namespace, ID    string
	Payload          []byte
	Meta             map[string]string
	IDPrefixTemplate string
	Priority         int
	IdempotencyToken string
}

// DrainRequest starts, changes or (Spec nil) cancels a drain.
type DrainRequest struct {
	NodeID       string
	Spec         *drover.DrainSpec
	MarkEligible bool
	Meta         map[string]string
}
