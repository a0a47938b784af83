package fsm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// TestLateSystemJobs: a system job that was registered after a node's change was proposed, and before that was applied, is evaluated by it.
func TestLateSystemJobs(t *testing.T) {
	t.Parallel()
	of := func(version int) (b *bench, evals func() []*drover.Evaluation) {
		b = setup(t)
		b.do(&command.RaiseVersion{Version: version})
		b.do(node("n1"))
		b.do(&command.SetEligibility{NodeID: "n1", Eligibility: drover.NodeIneligible, Time: 5})
		j := job("sys", drover.JobTypeSystem, 1)
		b.do(&command.RegisterJob{Job: j, Time: 6})
		b.do(&command.RegisterJob{Job: job("web", "service", 1), Time: 6})
		return b, func() []*drover.Evaluation {
			return slices.SortedFunc(b.now().EvaluationsByJob("default", "sys"), func(x, y *drover.Evaluation) int {
				return int(x.CreateIndex) - int(y.CreateIndex)
			})
		}
	}
	up := &command.SetEligibility{NodeID: "n1", Eligibility: drover.NodeEligible, Time: 7}
	old, evals := of(2)
	old.do(up)
	require.Empty(t, evals(), "servers of before would not make it")

	b, evals := of(3)
	again, _ := of(3)
	b.do(up)
	again.do(up)
	require.Len(t, evals(), 1)
	first := evals()[0]
	require.Equal(t, []any{"n1", drover.EvalPending, drover.TriggerNodeUpdate, int64(7)},
		[]any{first.NodeID, first.Status, first.TriggeredBy, first.CreateTime})
	require.NotNil(t, again.now().Evaluation(first.ID), "all servers have the same one")
	b.do(up)
	require.Len(t, evals(), 1, "nothing changed")
	require.Empty(t, slices.Collect(b.now().EvaluationsByJob("default", "web")))

	b.do(&command.UpdateNodeStatuses{Nodes: []command.NodeStatus{{NodeID: "n1", Status: drover.NodeStatusDown}}, Time: 8})
	require.Len(t, evals(), 1)
	b.do(&command.UpdateNodeStatuses{
		Nodes: []command.NodeStatus{{NodeID: "n1", Status: drover.NodeStatusReady}}, Time: 9,
		Evals: []*drover.Evaluation{{ID: "e9", Namespace: "default", JobID: "sys", Status: drover.EvalPending}},
	})
	require.Len(t, evals(), 2, "the command has it")
	b.do(&command.SetDrain{NodeID: "n1", Strategy: &drover.DrainStrategy{}, Time: 10})
	require.Len(t, evals(), 2)
	b.do(&command.SetDrain{NodeID: "n1", MarkEligible: true, Time: 11})
	require.Len(t, evals(), 3)
}
