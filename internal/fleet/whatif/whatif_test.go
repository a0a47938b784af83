package whatif

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

func ask() fleet.Simulation {
	p := &fleet.Policy{
		Name: "p", Provider: "loopback", Zones: []string{"a"}, Max: 20, Idle: time.Minute,
		Types: []fleet.InstanceType{{Name: "t", Price: 1, Capacity: drover.Capacity{CPU: 4000, MemoryMB: 8000, DiskMB: 10000}}},
	}
	p.Canonicalize()
	return fleet.Simulation{Policy: p, Workload: "poisson", PerHour: 60, Length: time.Hour, Run: time.Minute, Seed: 3}
}

func TestASimulationIsRepeatable(t *testing.T) {
	t.Parallel()
	first, err := Simulate(t.Context(), ask())
	require.NoError(t, err)
	require.Len(t, first, 1)
	require.Equal(t, "drover", first[0].Rules)
	require.Positive(t, first[0].Tasks)
	require.Contains(t, first[0].Cloud, "Cloud as loopback: machines are made ")
	again, err := Simulate(t.Context(), ask())
	require.NoError(t, err)
	require.Equal(t, first[0].Hash, again[0].Hash)
	compared := ask()
	compared.Compare = true
	list, err := Simulate(t.Context(), compared)
	require.NoError(t, err)
	require.Greater(t, len(list), 1)
	require.Equal(t, first[0].Hash, list[0].Hash)
}

func TestQuestionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for text, change := range map[string]func(*fleet.Simulation){
		"fleet[p].Types":             func(a *fleet.Simulation) { a.Policy.Types = nil },
		"workload: must be":          func(a *fleet.Simulation) { a.Workload = "odd" },
		"at most five million":       func(a *fleet.Simulation) { a.PerHour = 1e7 },
		"provider: must be loopback": func(a *fleet.Simulation) { a.Provider = "moon" },
		"the workload has about":     func(a *fleet.Simulation) { a.Length = 32 * 24 * time.Hour },
	} {
		a := ask()
		change(&a)
		_, err := Simulate(t.Context(), a)
		require.ErrorContains(t, err, text)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

// The provider's own bounds hold beside the pool's.
func TestTheTighterBoundHolds(t *testing.T) {
	t.Parallel()
	a := ask()
	a.Max, a.Room = 5, drover.Capacity{CPU: 9000}
	a.Policy.Limits.MemoryMB = 7
	p := bounded(&a)
	require.Equal(t, 5, p.Max)
	require.Equal(t, int64(9000), p.Limits.CPU)
	require.Equal(t, int64(7), p.Limits.MemoryMB)
	require.Equal(t, 20, a.Policy.Max, "the question is not changed")
	a.Max = 50
	require.Equal(t, 20, bounded(&a).Max)
}

// TestASimulationCanBeStopped: one that nobody waits for any more ends.
func TestASimulationCanBeStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := ask()
	q.PerHour, q.Length = 2000, 24*time.Hour
	list, err := Simulate(ctx, q)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, list)
}

// TestALongSimulationHasAFewPoints: a point each second of a minute's work was a point each second until the last of it ended, which took
// a gigabyte of memory for a task that runs for years.
func TestALongSimulationHasAFewPoints(t *testing.T) {
	t.Parallel()
	a := ask()
	a.Trace = []byte("0 500000 100 100\n")
	list, err := Simulate(t.Context(), a)
	require.NoError(t, err)
	require.Len(t, list, 1)
	all := list[0].Points
	require.LessOrEqual(t, len(all), 1024)
	require.Greater(t, len(all), 500)
	require.Greater(t, all[len(all)-1].At, 490_000*time.Second)
	step := all[1].At - all[0].At
	for i := range all[1:] {
		require.Equal(t, step, all[i+1].At-all[i].At, "the chart has one step")
	}
}
