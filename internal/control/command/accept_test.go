package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func ids[T any](list []T, id func(T) string) []string {
	var out []string
	for _, x := range list {
		out = append(out, id(x))
	}
	return out
}

func TestAcceptTakesWhatWasAccepted(t *testing.T) {
	t.Parallel()
	job := &drover.Job{ID: "j", Version: 3}
	plan := &drover.Plan{
		EvalID: "e", Job: job, DeploymentUpdates: []*drover.DeploymentStatusUpdate{{DeploymentID: "d"}},
		NodeAllocation: map[string][]*drover.Allocation{"n1": {{ID: "a1"}}, "refused": {{ID: "r"}}},
	}
	accepted := &drover.PlanResult{
		NodeAllocation:  map[string][]*drover.Allocation{"n2": {{ID: "b1"}, {ID: "b2"}}, "n1": {{ID: "a1"}}},
		NodeUpdate:      map[string][]*drover.Allocation{"n2": {{ID: "s2"}}, "n1": {{ID: "s1"}}},
		NodePreemptions: map[string][]*drover.Allocation{"n3": {{ID: "p3", PreemptedByAllocation: "a1", DesiredDescription: "room"}}},
		Deployment:      &drover.Deployment{ID: "d2"},
	}
	c := Accept(plan, accepted)
	require.Equal(t, "e", c.EvalID)
	require.Same(t, job, c.Job)
	require.Same(t, accepted.Deployment, c.Deployment, "the accepted one, not the plan's")
	require.Equal(t, plan.DeploymentUpdates, c.DeploymentUpdates)
	require.Equal(
		t, []string{"a1", "b1", "b2"}, ids(c.Placed, func(a *drover.Allocation) string { return a.ID }), "by node: the same bytes each time",
	)
	require.Equal(t, []string{"s1", "s2"}, ids(c.Stopped, func(s StoppedAlloc) string { return s.ID }))
	require.Equal(t, []PreemptedAlloc{{ID: "p3", By: "a1", Description: "room"}}, c.Preempted)
}

func TestAcceptCopiesAllocationsWithoutTheirJob(t *testing.T) {
	t.Parallel()
	now, old := &drover.Job{ID: "j", Version: 3}, &drover.Job{ID: "j", Version: 2}
	own, older, none := &drover.Allocation{ID: "own", Job: now}, &drover.Allocation{ID: "older", Job: old}, &drover.Allocation{ID: "none"}
	c := Accept(&drover.Plan{Job: now}, &drover.PlanResult{NodeAllocation: map[string][]*drover.Allocation{"n": {own, older, none}}})
	for _, a := range c.Placed {
		require.Nil(t, a.Job)
	}
	require.Equal(t, map[string]*drover.Job{"older": old}, c.Older, "only where it is not the plan's version")
	require.Same(t, now, own.Job, "the plan is not changed")
	require.Same(t, old, older.Job)

	c = Accept(&drover.Plan{}, &drover.PlanResult{NodeAllocation: map[string][]*drover.Allocation{"n": {older}}})
	require.Nil(t, c.Older, "a plan without a job, of one that is gone")
}

// TestAcceptLeavesTheClientStatusToTheNode: control says only that an allocation is lost or unknown.
func TestAcceptLeavesTheClientStatusToTheNode(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		drover.AllocClientLost: drover.AllocClientLost, drover.AllocClientUnknown: drover.AllocClientUnknown,
		drover.AllocClientRunning: "", drover.AllocClientPending: "", drover.AllocClientComplete: "", drover.AllocClientFailed: "", "": "",
	} {
		tracker := &drover.RescheduleTracker{}
		c := Accept(&drover.Plan{}, &drover.PlanResult{NodeUpdate: map[string][]*drover.Allocation{"n": {{
			ID: "a", ClientStatus: status, DesiredStatus: drover.AllocDesiredStop, DesiredDescription: "why", FollowupEvalID: "f",
			RescheduleTracker: tracker,
		}}}})
		require.Equal(t, []StoppedAlloc{{
			ID: "a", Description: "why", DesiredStatus: drover.AllocDesiredStop, ClientStatus: want, FollowupEvalID: "f",
			RescheduleTracker: tracker,
		}}, c.Stopped, "%q", status)
	}
}

func TestAcceptOfNothing(t *testing.T) {
	t.Parallel()
	require.Equal(t, PlanCommit{EvalID: "e"}, Accept(&drover.Plan{EvalID: "e"}, &drover.PlanResult{}))
}

// What a plan placed elsewhere for a runner that is spared would be one too many. The spared one goes on, with the other as its
// replacement, and counts for the quota that the planner thought it had left.
func TestWhatReplacesASparedAllocationIsNotPlaced(t *testing.T) {
	t.Parallel()
	p := PlanCommit{
		Stopped: []StoppedAlloc{{ID: "warm"}, {ID: "other"}},
		Placed: []*drover.Allocation{
			{ID: "for-warm", NodeID: "n2", PreviousAllocation: "warm"},
			{ID: "for-other", NodeID: "n2", PreviousAllocation: "other"},
			{ID: "beside", NodeID: "n1"},
			{ID: "new", NodeID: "n2"},
		},
	}
	left := p.Sparing(map[string]string{"warm": "n1"}, func(string) *drover.Allocation { return nil })
	require.Equal(t, []string{"other"}, ids(left.Stopped, func(s StoppedAlloc) string { return s.ID }))
	require.Equal(t, []string{"for-other", "new"}, ids(left.Placed, func(a *drover.Allocation) string { return a.ID }))
	require.Len(t, p.Placed, 4, "the plan stays as it was")
}
