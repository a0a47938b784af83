package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"] = node("n", 1000)
	f.nodes["down"] = node("down", 1000)
	f.nodes["down"].Status = drover.NodeStatusDown
	f.nodes["shy"] = node("shy", 1000)
	f.nodes["shy"].SchedulingEligibility = drover.NodeIneligible
	f.nodes["few"] = node("few", 1000)
	f.nodes["few"].NodeMaxAllocs = 1
	f.allocs["old"] = alloc("old", "n", 400, 8080)
	f.allocs["onshy"] = alloc("onshy", "shy", 400)
	stopping := alloc("stopping", "n", 100)
	stopping.DesiredStatus = drover.AllocDesiredStop
	f.allocs["stopping"] = stopping
	f.allocs["ended"] = alloc("ended", "n", 500, 9090)
	f.allocs["ended"].ClientStatus = drover.AllocClientComplete
	f.allocs["runner"] = alloc("runner", "n", 0)
	f.allocs["runner"].Claim = &drover.Claim{RunnerID: "r"}

	stop := func(a *drover.Allocation) *drover.Plan {
		return &drover.Plan{NodeUpdate: map[string][]*drover.Allocation{a.NodeID: {a}}}
	}
	tests := map[string]struct {
		plan *drover.Plan
		ok   bool
	}{
		"fits":                              {place(alloc("a", "n", 500)), true},
		"a stopped one still holds":         {place(alloc("a", "n", 501)), false},
		"two together do not fit":           {place(alloc("a", "n", 300), alloc("b", "n", 300)), false},
		"unknown node":                      {place(alloc("a", "x", 1)), false},
		"down node":                         {place(alloc("a", "down", 1)), false},
		"ineligible node":                   {place(alloc("a", "shy", 1)), false},
		"in place on an ineligible node":    {place(alloc("onshy", "shy", 500)), true},
		"in place counts the growth":        {place(alloc("old", "n", 900)), true},
		"in place grows too far":            {place(alloc("old", "n", 901)), false},
		"in place of an ended one":          {place(alloc("ended", "n", 1)), false},
		"port taken":                        {place(alloc("a", "n", 1, 8080)), false},
		"port of an ended one":              {place(alloc("a", "n", 1, 9090)), true},
		"own port in place":                 {place(alloc("old", "n", 400, 8080)), true},
		"the same port twice":               {place(alloc("a", "n", 1, 1), alloc("b", "n", 1, 1)), false},
		"max allocs":                        {place(alloc("a", "few", 1), alloc("b", "few", 1)), false},
		"below max allocs":                  {place(alloc("a", "few", 1)), true},
		"stop on a lost node":               {stop(alloc("z", "gone", 1)), true},
		"stop of a runner claimed since":    {stop(alloc("runner", "n", 0)), false},
		"stop of a runner known as claimed": {stop(f.allocs["runner"]), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Check(f.snapshot(), tt.plan)
			require.Equal(t, tt.ok, r.RefreshIndex == 0)
			if !tt.ok {
				require.Empty(t, r.NodeAllocation)
				require.Empty(t, r.NodeUpdate)
			}
		})
	}
}

func TestCheckAcceptsTheOtherNodes(t *testing.T) {
	t.Parallel()
	f := newFakeState()
	f.nodes["n"], f.nodes["m"] = node("n", 10), node("m", 10)
	plan := place(alloc("a", "n", 10), alloc("b", "m", 11))
	r := Check(f.snapshot(), plan)
	require.Equal(t, []string{"m"}, r.RejectedNodes)
	require.Len(t, r.NodeAllocation["n"], 1)
	require.NotZero(t, r.RefreshIndex)

	plan.AllAtOnce = true
	r = Check(f.snapshot(), plan)
	require.Empty(t, r.NodeAllocation)
	require.NotZero(t, r.RefreshIndex)
}
