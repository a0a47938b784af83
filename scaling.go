package drover

// TrackedScalingEvents is how many scaling events of a group are kept (Nomad's number).
const TrackedScalingEvents = 20

// ScalingEvent tells of one scaling action: a new count, or only a message of an autoscaler.
type ScalingEvent struct {
	Time          int64 // unix ns
	Count         *int64
	PreviousCount int64
	Message       string
	Error         bool
	Meta          map[string]any
	EvalID        *string
	CreateIndex   uint64
}

// JobScalingEvents are the scaling events of a job, by group, the newest first.
type JobScalingEvents struct {
	Namespace     string
	JobID         string
	ScalingEvents map[string][]*ScalingEvent
	ModifyIndex   uint64
}
