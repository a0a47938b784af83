package drover

import "time"

// Evaluation statuses.
const (
	EvalBlocked  = "blocked"
	EvalPending  = "pending"
	EvalComplete = "complete"
	EvalFailed   = "failed"
	EvalCanceled = "canceled"
)

// What triggered an evaluation.
const (
	TriggerJobRegister       = "job-register"
	TriggerJobDeregister     = "job-deregister"
	TriggerPeriodicJob       = "periodic-job"
	TriggerNodeUpdate        = "node-update"
	TriggerNodeDrain         = "node-drain"
	TriggerAllocStop         = "alloc-stop"
	TriggerAllocFailure      = "alloc-failure"
	TriggerReconnect         = "reconnect"
	TriggerDisconnectTimeout = "max-disconnect-timeout"
	TriggerQueuedAllocs      = "queued-allocs"
	TriggerRetryFailedAlloc  = "alloc-reschedule"
	TriggerPreemption        = "preemption"
	TriggerScaling           = "job-scaling"
	TriggerRollingUpdate     = "rolling-update"
	TriggerMaxPlanAttempts   = "max-plan-attempts"
	TriggerDeploymentWatcher = "deployment-watcher"
	TriggerFailedFollowUp    = "failed-follow-up"
	TriggerRunnerClaim       = "runner-claim" // ours: the pool lost a warm runner to a claimer
)

// Evaluation asks the scheduler to look at a job.
type Evaluation struct {
	ID                   string
	Priority             int
	Type                 string
	TriggeredBy          string
	Namespace            string
	JobID                string
	JobModifyIndex       uint64
	NodeID               string
	NodeModifyIndex      uint64
	DeploymentID         string
	Status               string
	StatusDescription    string
	Wait                 time.Duration
	WaitUntil            time.Time
	NextEval             string
	PreviousEval         string
	BlockedEval          string
	RelatedEvals         []*EvaluationStub
	FailedTGAllocs       map[string]*AllocationMetric
	PlanAnnotations      *PlanAnnotations
	ClassEligibility     map[string]bool
	EscapedComputedClass bool
	QuotaLimitReached    string
	AnnotatePlan         bool
	QueuedAllocations    map[string]int
	SnapshotIndex        uint64
	CreateIndex          uint64
	ModifyIndex          uint64
	CreateTime           int64
	ModifyTime           int64
}

// Terminal reports whether nothing more comes of it.
func (e *Evaluation) Terminal() bool {
	return e.Status == EvalComplete || e.Status == EvalFailed || e.Status == EvalCanceled
}

// Job returns the identity of the evaluated job.
func (e *Evaluation) Job() NamespacedID { return NamespacedID{e.Namespace, e.JobID} }

// EvaluationStub is an evaluation in short.
type EvaluationStub struct {
	ID                string
	Priority          int
	Type              string
	TriggeredBy       string
	Namespace         string
	JobID             string
	NodeID            string
	DeploymentID      string
	Status            string
	StatusDescription string
	WaitUntil         time.Time
	NextEval          string
	PreviousEval      string
	BlockedEval       string
	CreateIndex       uint64
	ModifyIndex       uint64
	CreateTime        int64
	ModifyTime        int64
}

// Plan is what the scheduler proposes; the planner re-checks and commits it.
type Plan struct {
	EvalID        string
	EvalToken     string // proves that the proposer still owns the evaluation
	Priority      int
	AllAtOnce     bool
	Job           *Job
	SnapshotIndex uint64 // the state that the scheduler saw

	NodeUpdate      map[string][]*Allocation // by node: allocations to stop (copies with the new desired status)
	NodeAllocation  map[string][]*Allocation // by node: new or in-place updated allocations
	NodePreemptions map[string][]*Allocation // by node: allocations to evict for these

	Deployment        *Deployment // to create
	DeploymentUpdates []*DeploymentStatusUpdate
	Annotations       *PlanAnnotations
}

// Empty reports whether committing would change nothing.
func (p *Plan) Empty() bool {
	return len(p.NodeUpdate) == 0 && len(p.NodeAllocation) == 0 && len(p.NodePreemptions) == 0 &&
		p.Deployment == nil && len(p.DeploymentUpdates) == 0
}

// PlanResult is what was committed of a plan.
type PlanResult struct {
	NodeUpdate      map[string][]*Allocation
	NodeAllocation  map[string][]*Allocation
	NodePreemptions map[string][]*Allocation
	Deployment      *Deployment
	RejectedNodes   []string // nodes whose part was refused: there was no longer room
	RefreshIndex    uint64   // if not 0, plan again on a state at least this new
	AllocIndex      uint64   // raft index of the commit
}

// PlanAnnotations says what a plan would do.
type PlanAnnotations struct {
	DesiredTGUpdates map[string]*DesiredUpdates
	PreemptedAllocs  []*AllocationListStub
}

// DesiredUpdates counts a group's changes.
type DesiredUpdates struct {
	Ignore, Place, Migrate, Stop, InPlaceUpdate, DestructiveUpdate, Canary, Preemptions uint64
	Disconnect, Reconnect, RescheduleNow, RescheduleLater                               uint64
}

// Deployment statuses.
const (
	DeploymentRunning    = "running"
	DeploymentPaused     = "paused"
	DeploymentFailed     = "failed"
	DeploymentSuccessful = "successful"
	DeploymentCancelled  = "cancelled"
	DeploymentPending    = "pending"
	DeploymentBlocked    = "blocked"
)

// Deployment follows the roll-out of a job version.
type Deployment struct {
	ID                 string
	Namespace          string
	JobID              string
	JobVersion         uint64
	JobModifyIndex     uint64
	JobSpecModifyIndex uint64
	JobCreateIndex     uint64
	IsMultiregion      bool
	EvalPriority       int // of the evaluation that began it
	TaskGroups         map[string]*DeploymentState
	Status             string
	StatusDescription  string
	CreateIndex        uint64
	ModifyIndex        uint64
	CreateTime         int64
	ModifyTime         int64
}

// Active reports whether the deployment may still change allocations.
func (d *Deployment) Active() bool {
	return d != nil && (d.Status == DeploymentRunning || d.Status == DeploymentPaused || d.Status == DeploymentPending ||
		d.Status == DeploymentBlocked)
}

// DeploymentState is a group's progress.
type DeploymentState struct {
	PlacedCanaries    []string
	AutoRevert        bool
	AutoPromote       bool
	ProgressDeadline  time.Duration
	RequireProgressBy time.Time
	Promoted          bool
	DesiredCanaries   int
	DesiredTotal      int
	PlacedAllocs      int
	HealthyAllocs     int
	UnhealthyAllocs   int
}

// Unpromoted reports whether canaries of the group have to prove the version first, and were not promoted. A missing state
// has none.
func (s *DeploymentState) Unpromoted() bool { return s != nil && s.DesiredCanaries > 0 && !s.Promoted }

// Waiting reports whether the group waits for allocations to become healthy; not for a person to promote canaries.
func (s *DeploymentState) Waiting() bool {
	if s.Unpromoted() {
		return s.HealthyAllocs < s.DesiredCanaries
	}
	return s.HealthyAllocs < s.DesiredTotal
}

// Late reports whether the group still waits and its progress deadline has passed: its deployment fails by that.
func (s *DeploymentState) Late(now time.Time) bool {
	return s.Waiting() && !s.RequireProgressBy.IsZero() && !s.RequireProgressBy.After(now)
}

// DeploymentStatusUpdate changes a deployment's status.
type DeploymentStatusUpdate struct {
	DeploymentID      string
	Status            string
	StatusDescription string
}
