package draft

import (
	"iter"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

// Snapshot is what a draft looks up. Values read are never changed.
type Snapshot interface {
	Index() uint64
	Node(id string) *drover.Node
	AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation]
	EvaluationsByJob(namespace, id string) iter.Seq[*drover.Evaluation]
}

// Draft is a plan that is being made for one evaluation.
type Draft struct {
	Plan        *drover.Plan
	FollowUps   []*drover.Evaluation // to be created with the plan
	Annotations map[string]*drover.DesiredUpdates

	// What it is made for. Nothing here changes.
	Eval *drover.Evaluation
	Job  *drover.Job // nil if the job is unknown
	Now  time.Time
	IDs  id.Source

	snapshot Snapshot
	nodes    map[string]*drover.Node
}

// New returns an empty draft.
func New(s Snapshot, e *drover.Evaluation, job *drover.Job, now time.Time, ids id.Source) *Draft {
	return &Draft{
		Eval: e, Job: job, Now: now, IDs: ids, snapshot: s,
		Annotations: map[string]*drover.DesiredUpdates{}, nodes: map[string]*drover.Node{},
		Plan: &drover.Plan{
			EvalID: e.ID, Priority: e.Priority, Job: job, SnapshotIndex: s.Index(),
			AllAtOnce: job != nil && job.AllAtOnce, NodeUpdate: map[string][]*drover.Allocation{},
			NodeAllocation: map[string][]*drover.Allocation{}, NodePreemptions: map[string][]*drover.Allocation{},
		},
	}
}

// Updates returns the group's counts for annotations.
func (d *Draft) Updates(group string) *drover.DesiredUpdates {
	u := d.Annotations[group]
	if u == nil {
		u = &drover.DesiredUpdates{}
		d.Annotations[group] = u
	}
	return u
}

// Node looks a node up once; nil if it is unknown.
func (d *Draft) Node(id string) *drover.Node {
	n, seen := d.nodes[id]
	if !seen {
		n = d.snapshot.Node(id)
		d.nodes[id] = n
	}
	return n
}

// Lost reports whether nothing can be known of what runs on the node.
func (d *Draft) Lost(nodeID string) bool {
	n := d.Node(nodeID)
	return n == nil || n.Status == drover.NodeStatusDown || n.Status == drover.NodeStatusDisconnected
}

// Why an allocation is stopped, in Nomad's words.
const (
	WhyNotNeeded   = "alloc not needed due to job update"
	WhyLost        = "alloc is lost since its node is down"
	WhyMigrating   = "alloc is being migrated"
	WhyUpdating    = "alloc is being updated due to job update"
	WhyRescheduled = "alloc was rescheduled because it failed"
	WhyReconnected = "alloc not needed due to disconnected client reconnect"
	WhyNotOnNode   = "alloc not needed as node is tainted"
)

// End stops an allocation, or marks it lost if its node is.
func (d *Draft) End(a *drover.Allocation, why string) {
	if d.Lost(a.NodeID) {
		d.Lose(a)
		return
	}
	d.Stop(a, why)
}

// Stop marks an allocation to be stopped, wherever it is; what it is then, its node says.
func (d *Draft) Stop(a *drover.Allocation, why string) { d.update(stopped(a, why), a.NodeID) }

// Lose marks an allocation as lost with its node.
func (d *Draft) Lose(a *drover.Allocation) {
	s := stopped(a, WhyLost)
	s.ClientStatus, s.ClientDescription = drover.AllocClientLost, WhyLost
	d.update(s, a.NodeID)
}

func stopped(a *drover.Allocation, why string) *drover.Allocation {
	s := new(*a)
	s.DesiredStatus, s.DesiredDescription = drover.AllocDesiredStop, why
	return s
}

// MarkUnknown marks an allocation whose node is away as unknown. It stays wanted; followUp looks at it again.
func (d *Draft) MarkUnknown(a *drover.Allocation, followUp string) {
	s := new(*a)
	s.ClientStatus, s.FollowupEvalID = drover.AllocClientUnknown, followUp
	s.DesiredDescription = "alloc is unknown since its node is disconnected"
	d.update(s, a.NodeID)
}

// Await records which evaluation will replace an allocation that failed. It stays wanted: an update that does not stop.
func (d *Draft) Await(a *drover.Allocation, followUp string) {
	if a.FollowupEvalID == followUp {
		return
	}
	s := new(*a)
	s.FollowupEvalID = followUp
	d.update(s, a.NodeID)
}

func (d *Draft) update(a *drover.Allocation, nodeID string) {
	a.ModifyTime = d.Now.UnixNano()
	d.Plan.NodeUpdate[nodeID] = append(d.Plan.NodeUpdate[nodeID], a)
}

// ChangeInPlace gives an allocation the job's version while it runs, and returns its changed copy.
func (d *Draft) ChangeInPlace(a *drover.Allocation) *drover.Allocation {
	n := new(*a)
	n.Job, n.EvalID, n.ModifyTime = d.Job, d.Eval.ID, d.Now.UnixNano()
	d.Plan.NodeAllocation[a.NodeID] = append(d.Plan.NodeAllocation[a.NodeID], n)
	return n
}
