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

func TestMissingDriver(t *testing.T) {
	t.Parallel()
	metric := func(nodes int, reasons ...string) *drover.AllocationMetric {
		m := &drover.AllocationMetric{NodesEvaluated: nodes, NodesFiltered: len(reasons), ConstraintFiltered: map[string]int{}}
		for _, r := range reasons {
			m.ConstraintFiltered[r]++
		}
		return m
	}
	const docker, near = "missing drivers: docker (no daemon: x)", "missing drivers: docker (the nearest that is there: exec)"
	require.Equal(t, "docker", metric(2, docker, near).MissingDriver())
	require.Equal(t, "java", metric(1, "missing drivers: java").MissingDriver())
	require.Empty(t, metric(3, docker, near).MissingDriver(), "one has it, and is full")
	require.Empty(t, metric(2, docker, "${attr.kernel.name} = linux").MissingDriver())
	require.Empty(t, metric(2, docker, "missing drivers: java").MissingDriver(), "of two tasks")
	require.Empty(t, metric(0).MissingDriver())
	require.Empty(t, (*drover.AllocationMetric)(nil).MissingDriver())
}
