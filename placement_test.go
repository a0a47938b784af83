package drover_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	got := (&drover.AllocationMetric{
		NodesEvaluated: 4, NodesInPool: 4, NodePool: "default", NodesAvailable: map[string]int{"dc1": 4, "dc2": 0},
		ConstraintFiltered: map[string]int{"missing drivers": 2}, NodesExhausted: 2, DimensionExhausted: map[string]int{"memory": 1, "cpu": 1},
	}).Reasons()
	require.Empty(t, cmp.Diff([]string{
		`no node is available in datacenter "dc2"`, "missing drivers: 2 nodes left out", "2 nodes without enough room",
		"not enough cpu on 1 node", "not enough memory on 1 node",
	}, got))
}
