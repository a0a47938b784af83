package trigger

import (
	"cmp"
	"iter"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

// Snapshot is what is read; *store.Snapshot satisfies it.
type Snapshot interface {
	Job(namespace, id string) *drover.Job
	Jobs(namespace, prefix string) iter.Seq[*drover.Job]
	Node(id string) *drover.Node
	AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation]
}

// Maker makes evaluations: with ids from IDs, at Now (unix ns).
type Maker struct {
	IDs id.Source
	Now int64
}

// Job returns a pending evaluation of the job.
func (m Maker) Job(j *drover.Job, by string) *drover.Evaluation {
	return &drover.Evaluation{
		ID: m.IDs.New(), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, TriggeredBy: by,
		JobModifyIndex: j.JobModifyIndex, Status: drover.EvalPending, CreateTime: m.Now, ModifyTime: m.Now,
	}
}

// Node returns an evaluation for each job with an allocation on the node that is not stopped and ended, and for each
// system job that could use the node.
func (m Maker) Node(s Snapshot, nodeID, by string) []*drover.Evaluation {
	return m.NodeAs(s, nodeID, s.Node(nodeID), by)
}

// NodeAs is Node for a node that is about to be stored as n; nil if it is about to be forgotten.
func (m Maker) NodeAs(s Snapshot, nodeID string, n *drover.Node, by string) []*drover.Evaluation {
	jobs := map[drover.NamespacedID]*drover.Job{}
	for a := range s.AllocationsByNode(nodeID) {
		if a.ClientTerminal() && a.ServerTerminal() {
			continue
		}
		j := s.Job(a.Namespace, a.JobID)
		if j == nil {
			j = a.Job
		}
		if j != nil {
			jobs[drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}] = j
		}
	}
	if n != nil {
		for j := range s.Jobs("*", "") {
			if Wants(j, n) {
				jobs[j.Key()] = j
			}
		}
	}
	return m.sorted(jobs, func(e *drover.Evaluation) { e.TriggeredBy, e.NodeID = by, nodeID })
}

// Wants reports whether the job is a system job that could use the node, whatever state that is in.
func Wants(j *drover.Job, n *drover.Node) bool {
	return system(j) && !j.Stopped() && !j.Periodical() && !j.Parameterized() && usable(j, n)
}

func system(j *drover.Job) bool {
	return j.Type == drover.JobTypeSystem || j.Type == drover.JobTypeSysBatch
}

func usable(j *drover.Job, n *drover.Node) bool {
	return j.NodePool == n.NodePool || j.NodePool == drover.AllNodePool || j.NodePool == ""
}

// sorted makes the evaluations in the order of the jobs' names, so that ids repeat in simulations.
func (m Maker) sorted(jobs map[drover.NamespacedID]*drover.Job, set func(*drover.Evaluation)) []*drover.Evaluation {
	keys := make([]drover.NamespacedID, 0, len(jobs))
	for k := range jobs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b drover.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
	evals := make([]*drover.Evaluation, len(keys))
	for i, k := range keys {
		evals[i] = m.Job(jobs[k], "")
		evals[i].Namespace, evals[i].JobID = k.Namespace, k.ID
		set(evals[i])
	}
	return evals
}

// Each returns one evaluation for each of the jobs, whatever their number of mentions.
func (m Maker) Each(jobs iter.Seq[*drover.Job], by string) []*drover.Evaluation {
	set := map[drover.NamespacedID]*drover.Job{}
	for j := range jobs {
		set[j.Key()] = j
	}
	return m.sorted(set, func(e *drover.Evaluation) { e.TriggeredBy = by })
}
