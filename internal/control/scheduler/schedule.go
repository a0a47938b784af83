package scheduler

import (
	"iter"
	"time"

	"github.com/drover-project/drover"
)

// Snapshot is what the scheduler reads; *store.Snapshot satisfies it. Values read are never changed.
type Snapshot interface {
	Index() uint64
	Job(namespace, id string) *drover.Job
	QuickEnds(namespace, id string) drover.QuickEnds
	JobVersions(namespace, id string) []*drover.Job // newest first
	Node(id string) *drover.Node
	Nodes(prefix string) iter.Seq[*drover.Node]
	AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
	AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation]
	EvaluationsByJob(namespace, id string) iter.Seq[*drover.Evaluation]
	DeploymentsByJob(namespace, id string) iter.Seq[*drover.Deployment]
	NodePool(name string) *drover.NodePool
	SchedulerConfig() *drover.SchedulerConfiguration
	Used(nodeID string) drover.Capacity
}

// NodeUsage is an optional power of a Snapshot: all nodes, in an order that repeats, with what allocations hold on
// each. It saves a look-up a node.
type NodeUsage interface {
	NodesUsed() iter.Seq2[*drover.Node, drover.Capacity]
}

// ActiveAllocations is an optional power of a Snapshot: a job's allocations without those that both sides are done
// with (the node ended them, and control wanted that or they had been claimed). It keeps the evaluation of a warm pool
// from walking over all runners that were ever used up.
type ActiveAllocations interface {
	ActiveAllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
}

// UnfinishedAllocations is an optional power of a Snapshot: a node's allocations without those that the node reported
// as ended, so that looking at a node costs nothing for what was there before.
type UnfinishedAllocations interface {
	UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation]
}

// unfinishedOn yields the node's allocations, if possible without ended ones.
func unfinishedOn(s Snapshot, nodeID string) iter.Seq[*drover.Allocation] {
	if fast, ok := s.(UnfinishedAllocations); ok {
		return fast.UnfinishedByNode(nodeID)
	}
	return s.AllocationsByNode(nodeID)
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
	taken int    // nodes refused by distinct_hosts or distinct_property
}
