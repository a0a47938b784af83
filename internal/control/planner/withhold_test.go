package planner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A warm runner that a plan stops is withheld until the plan is in the state, and spared if it was handed out.
func TestWarmRunnersAreWithheldWhileTheyAreStopped(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"] = node("n", 1000)
	plan := place()
	plan.Job.TaskGroups = []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: 1}}, {Name: "other"}}
	stops := map[string]*drover.Allocation{"warm": nil, "handed": nil, "claimed": nil, "ordinary": nil}
	for id := range stops {
		f.allocs[id] = alloc(id, "n", 1)
		f.allocs[id].TaskGroup = "g"
		stops[id] = f.allocs[id]
	}
	stops["ordinary"].TaskGroup = "other"
	stops["claimed"].Claim = &drover.Claim{RunnerID: "r"}
	plan.NodeUpdate = map[string][]*drover.Allocation{"n": {stops["warm"], stops["handed"], stops["claimed"], stops["ordinary"]}}

	p := newPlanner(f, Config{})
	given := false
	p.deps.Withhold = func(_ context.Context, ids []string) (func(), error) {
		require.Equal(t, []string{"warm", "handed"}, ids)
		f.mu.Lock()
		defer f.mu.Unlock()
		a := *f.allocs["handed"]
		a.Claim = &drover.Claim{RunnerID: "s"} // recorded while the plan waits
		f.allocs["handed"] = &a
		return func() {
			given = true
			require.Equal(t, drover.AllocDesiredStop, f.snapshot().Allocation("warm").DesiredStatus)
		}, nil
	}
	start(t, p)
	r, err := p.Submit(t.Context(), plan, nil)
	require.NoError(t, err)
	require.True(t, given)
	require.NotZero(t, r.RefreshIndex, "to be planned again with what was claimed")
	require.Equal(t, drover.AllocDesiredRun, f.snapshot().Allocation("handed").DesiredStatus)
}

// Who may have handed out a runner does not answer: the plan is made again later.
func TestNothingIsStoppedThatMayBeHandedOut(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"] = node("n", 1000)
	plan := place()
	plan.Job.TaskGroups = []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: 1}}}
	f.allocs["warm"] = alloc("warm", "n", 1)
	f.allocs["warm"].TaskGroup = "g"
	plan.NodeUpdate = map[string][]*drover.Allocation{"n": {f.allocs["warm"]}}
	p := newPlanner(f, Config{})
	p.deps.Withhold = func(context.Context, []string) (func(), error) {
		return nil, drover.Errorf(drover.Unavailable, "it is away")
	}
	start(t, p)
	_, err := p.Submit(t.Context(), plan, nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.Equal(t, drover.AllocDesiredRun, f.snapshot().Allocation("warm").DesiredStatus)
}
