package runner

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/environment"
)

// looks is a snapshot of evaluations only.
type looks struct {
	Snapshot
	evals []*drover.Evaluation
}

func (l looks) EvaluationsByJob(string, string) iter.Seq[*drover.Evaluation] {
	return slices.Values(l.evals)
}

// Only what the scheduler found when it looked last says why runners do not come now.
func TestAReasonThatIsOverIsNotTold(t *testing.T) {
	t.Parallel()
	failed := map[string]*drover.AllocationMetric{environment.GroupName: {}}
	none := &drover.Evaluation{Status: drover.EvalComplete, ModifyIndex: 5, FailedTGAllocs: failed}
	for want, evals := range map[string][]*drover.Evaluation{
		"": {none, {Status: drover.EvalComplete, ModifyIndex: 9}},
		"no node can take a runner: there is no ready node": {
			{Status: drover.EvalComplete, ModifyIndex: 4},
			none,
			{Status: drover.EvalBlocked, ModifyIndex: 5},
			{Status: drover.EvalPending, ModifyIndex: 9},
			{Status: drover.EvalCanceled, ModifyIndex: 9},
		},
	} {
		_, why := unplaced(looks{evals: evals}, drover.NamespacedID{Namespace: "default", ID: "x"})
		require.Equal(t, want, why)
	}
	_, why := unplaced(looks{}, drover.NamespacedID{Namespace: "default", ID: "x"})
	require.Empty(t, why)
}

func TestCounted(t *testing.T) {
	t.Parallel()
	require.Empty(t, counted(nil))
	require.Equal(t, "cpu: 2, memory: 1", counted(map[string]int{"memory": 1, "cpu": 2}))
}

// park is a snapshot of runners and nodes only.
type park struct {
	Snapshot
	allocs []*drover.Allocation
	nodes  []*drover.Node
	job    *drover.Job
}

func (p park) AllocationsByJob(string, string) iter.Seq[*drover.Allocation] {
	return slices.Values(p.allocs)
}
func (p park) Nodes(string) iter.Seq[*drover.Node] { return slices.Values(p.nodes) }
func (p park) Job(string, string) *drover.Job      { return p.job }

// A failure is final when its node would only repeat it; if another node could take a runner, it has said so, too.
func TestAFinalFailure(t *testing.T) {
	t.Parallel()
	job := &drover.Job{TaskGroups: []*drover.TaskGroup{{Tasks: []*drover.Task{{Driver: "sandbox"}}}}}
	failed := func(node string, final bool) *drover.Allocation {
		e := &drover.TaskEvent{Type: drover.TaskDriverFailure, Details: map[string]string{}}
		if final {
			e.Details[drover.DetailFinal] = "true"
		}
		return &drover.Allocation{
			NodeID: node, Job: job, ClientStatus: drover.AllocClientFailed,
			TaskStates: map[string]*drover.TaskState{"runner": {Events: []*drover.TaskEvent{e, {Type: drover.TaskNotRestarting}}}},
		}
	}
	node := func(id, driver string) *drover.Node {
		return &drover.Node{
			ID: id, Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible,
			Drivers: map[string]*drover.DriverInfo{driver: {Detected: true}},
		}
	}
	a, b, other := node("a", "sandbox"), node("b", "sandbox"), node("c", "docker")
	of := func(nodes []*drover.Node, allocs ...*drover.Allocation) bool {
		return final(park{nodes: nodes, allocs: allocs}, allocs[len(allocs)-1])
	}
	require.True(t, of([]*drover.Node{a, other}, failed("a", true)))
	require.False(t, of([]*drover.Node{a, other}, failed("a", false)), "another try may help")
	require.False(t, of([]*drover.Node{a, b}, failed("a", true)), "the other node may have it")
	require.False(t, of([]*drover.Node{a, b}, failed("b", false), failed("a", true)), "it only failed")
	require.True(t, of([]*drover.Node{a, b}, failed("b", true), failed("a", true)))
}

// A runner of a deleted environment says nothing of the one that has its name now.
func TestAFailureOfADeletedEnvironment(t *testing.T) {
	t.Parallel()
	old := &drover.Allocation{Job: &drover.Job{CreateIndex: 3}, CreateIndex: 5, ClientStatus: drover.AllocClientFailed}
	p := park{allocs: []*drover.Allocation{old}, job: &drover.Job{CreateIndex: 3}}
	require.Equal(t, old, newestFailure(p, drover.NamespacedID{}))
	p.job = &drover.Job{CreateIndex: 9}
	require.Nil(t, newestFailure(p, drover.NamespacedID{}))
}
