package command

import "github.com/drover-project/drover"

// ApplyPlans commits what the planner accepted of several plans. Result: nil; the entry's index is the AllocIndex.
type ApplyPlans struct {
	Plans []PlanCommit
	Evals []*drover.Evaluation // evaluations that are done with these plans, in the same entry
	Time  int64
}

// PlanCommit is the accepted part of one plan. Allocations carry no Job: those placed get the plan's, but for those in
// Older.
type PlanCommit struct {
	EvalID            string
	Job               *drover.Job // once; the store's own version is used if it has it
	Placed            []*drover.Allocation
	Stopped           []StoppedAlloc
	Preempted         []PreemptedAlloc
	Deployment        *drover.Deployment
	DeploymentUpdates []*drover.DeploymentStatusUpdate
	FollowUps         []*drover.Evaluation
	// Older are the jobs of allocations placed that run an earlier version than the plan's, by allocation.
	Older map[string]*drover.Job
	// Warm are the warm runners among Stopped and Preempted, if the incarnations Withheld do not hand them out until this is applied. One
	// that another was leased meanwhile, or that was handed out, goes on: nothing else is done on its node, or with AllAtOnce at all, and
	// the job is planned again. Without Warm everything is done.
	Warm      []string
	Withheld  []uint64
	AllAtOnce bool // set only beside Warm
}

// StoppedAlloc is an allocation that a plan stops. An empty ClientStatus keeps the allocation's.
type StoppedAlloc struct {
	ID             string
	Description    string
	DesiredStatus  string // "" = stop; run keeps it wanted (an unknown one)
	ClientStatus   string // "lost" when its node is gone, "unknown" when it is disconnected
	FollowupEvalID string
	// RescheduleTracker replaces the allocation's if not nil.
	RescheduleTracker *drover.RescheduleTracker
}

// PreemptedAlloc is an allocation that makes room for another.
type PreemptedAlloc struct {
	ID string
	By string // the allocation placed instead
	// Description is the plan's reason; entries of older logs have none.
	Description string
}

// Kind implements Command.
func (*ApplyPlans) Kind() Kind { return KindApplyPlans }
