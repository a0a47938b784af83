package command

import "github.com/drover-project/drover"

// RegisterJob stores a job. The version and JobModifyIndex move only if the specification changed.
// Result: the *drover.Job stored. Errors: Conflict if EnforceIndex fails, Invalid if the namespace is unknown.
type RegisterJob struct {
	Job            *drover.Job // canonical
	EnforceIndex   bool
	JobModifyIndex uint64               // with EnforceIndex: the JobModifyIndex the caller saw; 0 = the job must not exist
	Eval           *drover.Evaluation   // optional; JobModifyIndex is filled in by the FSM
	Evals          []*drover.Evaluation // further ones
	Time           int64
	Scaling        *ScalingRecord        // optional: the registration is a scaling action
	Submission     *drover.JobSubmission `codec:",omitempty"` // optional: what the job was made of; the FSM says of which version
	Versions       int                   `codec:",omitempty"` // of the job that are kept; 0 = drover.TrackedJobVersions
}

// DispatchJob registers a child of a parameterized job, unless the parent has a child with the same idempotency token.
// Result: the *drover.Job stored, which is the earlier child if there is one. Errors: as RegisterJob.
type DispatchJob struct {
	Register RegisterJob // its job has a parent and a token
}

// ScalingRecord is a scaling event of a group; its CreateIndex is filled in by the FSM.
type ScalingRecord struct {
	Group string
	Event drover.ScalingEvent
}

// RecordScaling keeps a scaling event that changes nothing. Result: nil. Errors: NotFound (job or group).
type RecordScaling struct {
	Namespace string
	JobID     string
	Record    ScalingRecord
}

// DeregisterJob stops a job, or with Purge forgets it. Result: nil. Errors: NotFound.
type DeregisterJob struct {
	Namespace       string
	ID              string
	Purge           bool
	NoShutdownDelay bool // sets the transition on the job's allocations
	Eval            *drover.Evaluation
	Time            int64
	Versions        int // how many are kept, the stop with them; 0 = that is left to the next registration
}

// SetJobStability marks a version as known to work. Result: nil. Errors: NotFound.
type SetJobStability struct {
	Namespace string
	ID        string
	Version   uint64
	Stable    bool
}

// TagJobVersion names a version, so that it is kept; a nil Tag removes the one called Name.
// Result: nil. Errors: NotFound, Conflict if another version has the name.
type TagJobVersion struct {
	Namespace string
	ID        string
	Version   uint64
	Name      string
	Tag       *drover.JobVersionTag
}

// Kind implements Command.
func (*RegisterJob) Kind() Kind { return KindRegisterJob }

// Kind implements Command.
func (*DispatchJob) Kind() Kind { return KindDispatchJob }

// Kind implements Command.
func (*DeregisterJob) Kind() Kind { return KindDeregisterJob }

// Kind implements Command.
func (*SetJobStability) Kind() Kind { return KindSetJobStability }

// Kind implements Command.
func (*TagJobVersion) Kind() Kind { return KindTagJobVersion }

// Kind implements Command.
func (*RecordScaling) Kind() Kind { return KindRecordScaling }
