package drover

import (
	"time"

	"github.com/drover-project/drover/jobdiff"
)

// The requests, outcomes and previews of the use cases that change the state: faces fill them, control/intake carries
// them out.

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
	Job            *Job
	EnforceIndex   bool
	JobModifyIndex uint64 // with EnforceIndex: what it must be; 0 = the job must be new
	PreserveCounts bool
	// PreserveResources keeps the resources of the tasks that are there already.
	PreserveResources bool
	EvalPriority      int
	Submission        *JobSubmission // optional: what the job was made of; not kept if it is larger than the server's limit
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
	CreatedEvals       []*Evaluation
	Diff               *jobdiff.Job // nil unless it was asked for
	Annotations        *PlanAnnotations
	FailedTGAllocs     map[string]*AllocationMetric
	NextPeriodicLaunch time.Time
	Warnings           string
	Placements         []PlannedPlacement `json:",omitempty"` // by group and node's name
}

// PlannedPlacement is how many allocations of a group a node would get.
type PlannedPlacement struct {
	Group, NodeID, NodeName string
	Count                   int
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
	Spec         *DrainSpec
	MarkEligible bool
	Meta         map[string]string
}
