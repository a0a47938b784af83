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
	f.version = 3
	f.nodes["n"] = node("n", 1000)
	plan := place()
	plan.Job.TaskGroups = []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: 1}}, {Name: "other"}}
	stops := map[string]*drover.Allocation{"warm": nil, "handed": nil, "claimed": nil, "ordinary": nil, "lost": nil, "failed": nil}
	for id := range stops {
		f.allocs[id] = alloc(id, "n", 1)
		f.allocs[id].TaskGroup = "g"
		stops[id] = f.allocs[id]
	}
	stops["ordinary"].TaskGroup = "other"
	stops["claimed"].Claim = &drover.Claim{RunnerID: "r"}
	plan.NodeUpdate = map[string][]*drover.Allocation{"n": {
		stops["warm"], stops["handed"], stops["claimed"], stops["ordinary"], stops["lost"], stops["failed"],
	}}
	stops["failed"].ClientStatus = drover.AllocClientFailed
	lost := *stops["lost"]
	lost.ClientStatus = drover.AllocClientLost // as the plan says; in the state it runs
	plan.NodeUpdate["n"][4] = &lost

	p := newPlanner(f, Config{})
	given := false
	p.deps.Withhold = func(_ context.Context, ids []string) ([]uint64, func(bool), error) {
		require.Equal(t, []string{"warm", "handed", "lost"}, ids)
		f.mu.Lock()
		defer f.mu.Unlock()
		a := *f.allocs["handed"]
		a.Claim = &drover.Claim{RunnerID: "s"} // recorded while the plan waits
		f.allocs["handed"] = &a
		return []uint64{0}, func(settled bool) {
			given = settled
			require.Equal(t, drover.AllocDesiredStop, f.snapshot().Allocation("warm").DesiredStatus)
		}, nil
	}
	start(t, p)
	r, err := p.Submit(t.Context(), plan, nil)
	require.NoError(t, err)
	require.True(t, given)
	require.NotZero(t, r.RefreshIndex, "to be planned again with what was claimed")
	require.Equal(t, drover.AllocDesiredRun, f.snapshot().Allocation("handed").DesiredStatus)
	require.Equal(t, []string{"warm", "lost"}, f.plans[0].Warm, "the other is not stopped")
}

// An incarnation that begins before the plan is applied withholds nothing. So the state machine is told who does, where all servers read
// it.
func TestThePlanSaysWhoWithholds(t *testing.T) {
	t.Parallel()
	for version, told := range map[int]bool{2: false, 3: true} {
		for _, leases := range [][]uint64{{0, 7}, nil} {
			f := newFakeState()
			f.version = version
			plan := f.stopsWarm()
			plan.AllAtOnce = true
			p := newPlanner(f, Config{})
			p.deps.Withhold = func(context.Context, []string) ([]uint64, func(bool), error) { return leases, func(bool) {}, nil }
			start(t, p)
			_, err := p.Submit(t.Context(), plan, nil)
			require.NoError(t, err)
			require.Len(t, f.plans, 1)
			if told && leases != nil {
				require.Equal(t, []string{"warm"}, f.plans[0].Warm)
				require.Equal(t, leases, f.plans[0].Withheld)
				require.True(t, f.plans[0].AllAtOnce)
			} else {
				require.Empty(t, f.plans[0].Warm, "nobody hands them out, or a server would drop it")
				require.Empty(t, f.plans[0].Withheld)
				require.False(t, f.plans[0].AllAtOnce)
			}
		}
	}
}

// Who may have handed out a runner does not answer: the plan is made again later.
func TestNothingIsStoppedThatMayBeHandedOut(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	plan := f.stopsWarm()
	p := newPlanner(f, Config{})
	p.deps.Withhold = func(context.Context, []string) ([]uint64, func(bool), error) {
		return nil, nil, drover.Errorf(drover.Unavailable, "it is away")
	}
	start(t, p)
	_, err := p.Submit(t.Context(), plan, nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.Equal(t, drover.AllocDesiredRun, f.snapshot().Allocation("warm").DesiredStatus)
}

// Who made a plan may leave before the log has answered, and a log may fail to answer. What the plan stops is withheld until it
// is known what became of that, which a failed proposal does not tell.
func TestRunnersAreWithheldUntilTheLogAnswers(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	plan := f.stopsWarm()
	f.gate, f.arrived = make(chan struct{}), make(chan struct{}, 1)
	p := newPlanner(f, Config{})
	given := make(chan bool, 1)
	p.deps.Withhold = func(context.Context, []string) ([]uint64, func(bool), error) {
		return []uint64{0}, func(settled bool) { given <- settled }, nil
	}
	start(t, p)
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-f.arrived; leave() }() // ends when it is proposed
	_, err := p.Submit(ctx, plan, nil)
	require.Equal(t, drover.Canceled, drover.CodeOf(err))
	require.Empty(t, given, "the proposal is on its way")
	f.gate <- struct{}{}
	require.True(t, <-given)

	f.mu.Lock()
	f.allocs["warm"] = alloc("warm", "n", 1)
	f.allocs["warm"].TaskGroup = "g"
	f.fail = drover.Errorf(drover.Unavailable, "leadership was lost; it may still be applied")
	f.mu.Unlock()
	plan.NodeUpdate = map[string][]*drover.Allocation{"n": {f.allocs["warm"]}}
	go func() { <-f.arrived; f.gate <- struct{}{} }() // ends when it is proposed
	_, err = p.Submit(t.Context(), plan, nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.False(t, <-given)
}

// The parts of a large plan may take long together. So those of a part are withheld only while that part is on its way.
func TestEachPartWithholdsWhatItStops(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	plan := place()
	plan.Job.TaskGroups = []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: 3}}}
	plan.NodeUpdate = map[string][]*drover.Allocation{}
	for _, id := range []string{"a", "b", "c"} {
		f.nodes["n"+id] = node("n"+id, 1000)
		f.allocs[id] = alloc(id, "n"+id, 1)
		f.allocs[id].TaskGroup = "g"
		plan.NodeUpdate["n"+id] = []*drover.Allocation{f.allocs[id]}
	}
	p := newPlanner(f, Config{MaxAllocs: 1})
	var withheld, stopped []string
	calls := 0
	p.deps.Withhold = func(_ context.Context, ids []string) ([]uint64, func(bool), error) {
		require.Equal(t, stopped, withheld, "the part before is done")
		withheld = append(withheld, ids...)
		calls++
		return []uint64{0}, func(bool) {
			for _, id := range ids {
				require.Equal(t, drover.AllocDesiredStop, f.snapshot().Allocation(id).DesiredStatus)
			}
			stopped = append(stopped, ids...)
		}, nil
	}
	start(t, p)
	r, err := p.Submit(t.Context(), plan, nil)
	require.NoError(t, err)
	require.Zero(t, r.RefreshIndex)
	require.ElementsMatch(t, []string{"a", "b", "c"}, withheld)
	require.Equal(t, withheld, stopped)
	require.Equal(t, 3, calls)
}

// stopsWarm adds a warm runner, and returns a plan that stops it.
func (f *fakeState) stopsWarm() *drover.Plan {
	f.nodes["n"] = node("n", 1000)
	plan := place()
	plan.Job.TaskGroups = []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: 1}}}
	f.allocs["warm"] = alloc("warm", "n", 1)
	f.allocs["warm"].TaskGroup = "g"
	plan.NodeUpdate = map[string][]*drover.Allocation{"n": {f.allocs["warm"]}}
	return plan
}
