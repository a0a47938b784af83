package scheduler

import (
	"iter"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/control/scheduler/rank"
	"github.com/drover-project/drover/internal/control/scheduler/reconcile"
	"github.com/drover-project/drover/volume"
)

// Snapshot is what the scheduler reads; *store.Snapshot satisfies it. Values read are never changed. rank.NodeUsage and
// rank.UnfinishedAllocations are optional powers of it, as ActiveAllocations and quota.Accounts are.
type Snapshot interface {
	draft.Snapshot
	rank.Snapshot
	reconcile.State

	AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
	NodePool(name string) *drover.NodePool
	SchedulerConfig() *drover.SchedulerConfiguration
	VolumeClaimsOf(namespace, jobID, group string) iter.Seq[*volume.HostVolumeClaim]
}

// ActiveAllocations is an optional power of a Snapshot: a job's allocations without those that both sides are done
// with (the node ended them, and control wanted that or they had been claimed). It keeps the evaluation of a warm pool
// from walking over all runners that were ever used up.
type ActiveAllocations interface {
	ActiveAllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
}

// Input is one question.
type Input struct {
	Eval     *drover.Evaluation
	Snapshot Snapshot
	Now      time.Time
	// Seed drives all that is left to chance: ids and the order among equals. Take a new random one for each call;
	// evaluation, attempt and snapshot index are mixed in, so that a repeated seed does not repeat ids.
	Seed uint64
	// Attempt counts from 0 how often this evaluation was planned before, after refused plans.
	Attempt int
}

// Output is the answer.
type Output struct {
	// Plan is never nil; Plan.Empty() tells that there is nothing to commit. Plan.Annotations counts each group's
	// changes, for a dry run. In Plan.NodeUpdate, an allocation that is still to run is not stopped: only its
	// FollowupEvalID is new.
	Plan *drover.Plan
	// Eval is the changed copy of the input's evaluation: status complete, or blocked when the input was a blocked
	// evaluation that still cannot be satisfied (block it again under the same id).
	Eval *drover.Evaluation
	// NewEvals are to be created: at most one blocked one, and follow-ups with WaitUntil.
	NewEvals    []*drover.Evaluation
	Explanation Explanation
}

// Explanation says what happened to each group of the job, in the job's order.
type Explanation struct {
	Groups []GroupExplanation
}

// GroupExplanation is a group's part of it.
type GroupExplanation struct {
	Group    string
	Placed   int                      // new allocations in the plan
	Failed   int                      // placements that found no node
	Metric   *drover.AllocationMetric // of the failed placements, or of the first placed; nil if none was tried
	Sentence string                   // for people

	note  string // added to the sentence
	unfit bool   // no node can run it, and it does not wait for one
	taken int    // nodes refused by distinct_hosts or distinct_property

	quota     string   // that was reached
	overQuota []string // what of it was exceeded; none: the quota is not why something failed
}
