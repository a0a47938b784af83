package trigger

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

// state is a literal Snapshot.
type state struct {
	jobs   []*drover.Job
	nodes  []*drover.Node
	allocs []*drover.Allocation
}

func (s state) Job(namespace, id string) *drover.Job {
	for _, j := range s.jobs {
		if j.Namespace == namespace && j.ID == id {
			return j
		}
	}
	return nil
}

func (s state) Jobs(string, string) iter.Seq[*drover.Job] { return slices.Values(s.jobs) }

func (s state) Node(id string) *drover.Node {
	for _, n := range s.nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

func (s state) AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, a := range s.allocs {
			if a.NodeID == nodeID && !yield(a) {
				return
			}
		}
	}
}

func job(id, kind string) *drover.Job {
	return &drover.Job{Namespace: "default", ID: id, Type: kind, NodePool: "default", Priority: 50, JobModifyIndex: 7}
}

func alloc(jobID, desired, client string) *drover.Allocation {
	return &drover.Allocation{
		Namespace: "default", JobID: jobID, NodeID: "n", DesiredStatus: desired, ClientStatus: client, Job: job(jobID, "service"),
	}
}

func jobsOf(evals []*drover.Evaluation) []string {
	var out []string
	for _, e := range evals {
		out = append(out, e.JobID)
	}
	return out
}

func TestNode(t *testing.T) {
	t.Parallel()
	stopped := job("stopped", drover.JobTypeSystem)
	stopped.Stop = true
	other := job("other", drover.JobTypeSystem)
	other.NodePool = "gpu"
	everywhere := job("everywhere", drover.JobTypeSysBatch)
	everywhere.NodePool = drover.AllNodePool
	s := state{
		jobs:  []*drover.Job{job("web", "service"), job("sys", "system"), stopped, other, everywhere, job("idle", "batch")},
		nodes: []*drover.Node{{ID: "n", NodePool: "default"}},
		allocs: []*drover.Allocation{
			alloc("web", "run", "running"), alloc("web", "run", "failed"), alloc("gone", "run", "running"),
			alloc("idle", "stop", "complete"),
		},
	}
	m := Maker{IDs: id.NewSeeded(1), Now: 99}
	evals := m.Node(s, "n", drover.TriggerNodeUpdate)
	require.Equal(t, []string{"everywhere", "gone", "sys", "web"}, jobsOf(evals))
	for _, e := range evals {
		require.Equal(t, "n", e.NodeID)
		require.Equal(t, drover.EvalPending, e.Status)
		require.EqualValues(t, 99, e.CreateTime)
	}
	require.Equal(t, []string{"gone", "web"}, jobsOf(m.NodeAs(s, "n", nil, drover.TriggerNodeUpdate)), "the node is forgotten")
	require.Equal(t, []string{"everywhere", "sys"}, jobsOf(m.NodeAs(s, "new", &drover.Node{NodePool: "default"}, drover.TriggerNodeUpdate)))
}

func TestEach(t *testing.T) {
	t.Parallel()
	j := job("j", "batch")
	evals := Maker{IDs: id.NewSeeded(1)}.Each(slices.Values([]*drover.Job{j, j, job("a", "batch")}), drover.TriggerAllocStop)
	require.Equal(t, []string{"a", "j"}, jobsOf(evals))
	require.EqualValues(t, 7, evals[0].JobModifyIndex)
}
