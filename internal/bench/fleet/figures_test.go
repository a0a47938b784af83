package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/fleet/scaler"
	"github.com/drover-project/drover/internal/fleet/simulator"
)

func TestSixtyFourCreatesAreIssuedWithinASecond(t *testing.T) {
	t.Parallel()
	p := simulator.StandardPolicy()
	p.Types = p.Types[:1]
	var work simulator.Workload
	for range 64 {
		work = append(work, simulator.Task{At: time.Minute, Run: time.Minute, Each: p.Types[0].Capacity, Priority: 50})
	}
	for _, batch := range []int{1, 10, 64} {
		cloud := simulator.StandardCloud()
		cloud.Caps.Batch = batch
		res, err := simulator.Run(simulator.Config{Seed: 1, Policy: p, Cloud: cloud, Work: work})
		require.NoError(t, err)
		require.GreaterOrEqual(t, res.Created, 64) // and perhaps a hedge
		require.Less(t, res.CreatedAt(64)-time.Minute, time.Second)
	}
}

func TestRestartsAdoptWithinTenSeconds(t *testing.T) {
	t.Parallel()
	p := simulator.StandardPolicy()
	p.Types = p.Types[:1]
	cloud := simulator.StandardCloud()
	res, err := simulator.Run(simulator.Config{
		Seed: 1, Policy: p, Cloud: cloud, Work: simulator.Burst(1, 900, 0, simulator.Mixed(30*time.Minute)),
		Restarts: []time.Duration{10 * time.Minute},
	})
	require.NoError(t, err)
	require.NotZero(t, res.Adopted)
	require.Less(t, res.Adopted, 10*time.Second)
	require.Zero(t, res.Redone)
}

func BenchmarkDecideLarge(b *testing.B) {
	in := largeInput()
	b.ReportAllocs()
	for b.Loop() {
		if out := scaler.Decide(in); len(out.Actions) == 0 {
			b.Fatal("nothing was bought")
		}
	}
}

func BenchmarkDecideNothingToDo(b *testing.B) {
	in := largeInput()
	in.Demand = nil
	b.ReportAllocs()
	for b.Loop() {
		scaler.Decide(in)
	}
}
