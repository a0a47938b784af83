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
		require.Equal(t, want, unplaced(looks{evals: evals}, drover.NamespacedID{Namespace: "default", ID: "x"}))
	}
	require.Empty(t, unplaced(looks{}, drover.NamespacedID{Namespace: "default", ID: "x"}))
}

func TestCounted(t *testing.T) {
	t.Parallel()
	require.Empty(t, counted(nil))
	require.Equal(t, "cpu: 2, memory: 1", counted(map[string]int{"memory": 1, "cpu": 2}))
}
