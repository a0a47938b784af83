package simulator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

func TestBoundIsSoundForWorkOfDifferentShapes(t *testing.T) {
	t.Parallel()
	offering := []fleet.Offering{{Price: 1, Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4000}}}
	cpu := Task{Run: time.Hour, Each: drover.Capacity{CPU: 1500, MemoryMB: 500}}
	memory := Task{Run: time.Hour, Each: drover.Capacity{CPU: 500, MemoryMB: 3500}}
	require.InDelta(t, 0.75, Workload{cpu}.Bound(offering), 1e-9)
	require.InDelta(t, 0.875, Workload{memory}.Bound(offering), 1e-9)
	require.InDelta(t, 1, Workload{cpu, memory}.Bound(offering), 1e-9, "both fit on one machine, for an hour at 1")
	big := Task{Run: time.Hour, Each: drover.Capacity{CPU: 4000, MemoryMB: 1000}}
	require.InDelta(t, 2, Workload{big}.Bound(append(offering, fleet.Offering{
		Price:    2,
		Capacity: drover.Capacity{CPU: 4000, MemoryMB: 8000},
	})), 1e-9)
}

func TestCalmKeepsMachinesOverShortGapsOnly(t *testing.T) {
	t.Parallel()
	machine := drover.Capacity{CPU: 1000, MemoryMB: 1000}
	at := func(from time.Duration) Task { return Task{At: from, Run: time.Hour, Each: machine} }
	require.InDelta(t, 1, Workload{at(0)}.Calm(machine, 0), 1e-9)
	require.InDelta(t, (2+0.1)/2, Workload{at(0), at(66 * time.Minute)}.Calm(machine, 0), 1e-9, "kept for six minutes")
	require.InDelta(t, 1, Workload{at(0), at(75 * time.Minute)}.Calm(machine, 0), 1e-9, "returned for a quarter of an hour")
	require.InDelta(t, (2+0.02)/2, Workload{at(0), at(75 * time.Minute)}.Calm(machine, 36*time.Second), 1e-9, "and booted twice")
}
