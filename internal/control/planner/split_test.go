package planner

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// wide is a plan of two allocations on each of n nodes, which have room for so many of them.
func wide(f *fakeState, n int, room int64) *drover.Plan {
	var allocs []*drover.Allocation
	for i := range n {
		id := fmt.Sprintf("n%02d", i)
		f.setNode(node(id, room*100))
		allocs = append(allocs, alloc(id+"-a", id, 100), alloc(id+"-b", id, 100))
	}
	return place(allocs...)
}

func TestALargePlanIsCommittedInParts(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	p := newPlanner(f, Config{MaxAllocs: 5})
	start(t, p)
	plan := wide(f, 6, 2)
	plan.Deployment = &drover.Deployment{ID: "d"}
	done := &drover.Evaluation{ID: "e", Status: drover.EvalComplete}
	later := &drover.Evaluation{ID: "later", Status: drover.EvalPending, WaitUntil: time.Unix(1, 0)}
	r, err := p.Submit(t.Context(), plan, []*drover.Evaluation{later, done})
	require.NoError(t, err)
	require.Zero(t, r.RefreshIndex)
	require.Equal(t, plan.NodeAllocation, r.NodeAllocation)
	require.Equal(t, plan.Deployment, r.Deployment)
	require.Equal(t, 3, f.entries, "two nodes are in each part: three would be six allocations")
	require.Equal(t, f.index, r.AllocIndex)
	require.Len(t, f.allocs, 12)
	require.Contains(t, f.evals, "e")
	require.Contains(t, f.evals, "later")
}

// What one part is refused the others do not lose; the evaluation goes on, and what is to be looked at later is stored once.
func TestAPartOfALargePlanIsRefused(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	p := newPlanner(f, Config{MaxAllocs: 4})
	start(t, p)
	plan := wide(f, 4, 2)
	f.setNode(node("n00", 100))
	done := &drover.Evaluation{ID: "e", Status: drover.EvalComplete}
	later := &drover.Evaluation{ID: "later", Status: drover.EvalPending, WaitUntil: time.Unix(1, 0)}
	r, err := p.Submit(t.Context(), plan, []*drover.Evaluation{done, later})
	require.NoError(t, err)
	require.Equal(t, []string{"n00"}, r.RejectedNodes)
	require.NotZero(t, r.RefreshIndex)
	require.Len(t, f.allocs, 6)
	require.NotContains(t, f.evals, "e")
	require.Contains(t, f.evals, "later")
}

func TestSplit(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	plan := wide(f, 4, 2)
	plan.NodeUpdate = map[string][]*drover.Allocation{"n00": {alloc("old", "n00", 100)}}
	plan.Deployment = &drover.Deployment{ID: "d"}
	require.Equal(t, []*drover.Plan{plan}, split(plan, 9))
	parts := split(plan, 2)
	require.Len(t, parts, 4, "the part of a node stays whole")
	require.Len(t, parts[0].NodeUpdate, 1)
	require.Len(t, parts[0].NodeAllocation["n00"], 2)
	require.NotNil(t, parts[0].Deployment)
	require.Nil(t, parts[1].Deployment)
	plan.AllAtOnce = true
	require.Equal(t, []*drover.Plan{plan}, split(plan, 2))
}

// Follow-up evaluations go with the first part that is committed, and never twice: one that was dealt with would be pending again.
func TestFollowUpsOfParts(t *testing.T) {
	t.Parallel()
	done := &drover.Evaluation{ID: "e", Status: drover.EvalComplete}
	later := &drover.Evaluation{ID: "later", Status: drover.EvalPending, WaitUntil: time.Unix(1, 0)}
	all := []*drover.Evaluation{done, later}
	var w whole
	require.Equal(t, []*drover.Evaluation{later}, w.evals(all, false))
	require.Equal(t, all, w.evals(all, true))
	nothing := drover.PlanResult{NodeAllocation: map[string][]*drover.Allocation{}, RefreshIndex: 7}
	w.add(nothing)
	require.Equal(t, []*drover.Evaluation{later}, w.evals(all, true))
	w.add(drover.PlanResult{NodeAllocation: map[string][]*drover.Allocation{"n": {}}})
	require.Empty(t, w.evals(all, true))
	require.EqualValues(t, 7, w.RefreshIndex)
}
