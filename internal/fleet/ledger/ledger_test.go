package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

func TestCostsAreDividedByUse(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	size := drover.Capacity{CPU: 1000, MemoryMB: 1000}
	a, b := drover.NamespacedID{Namespace: "default", ID: "a"}, drover.NamespacedID{Namespace: "default", ID: "b"}
	var m Meter
	m.Observe(at, size, nil)
	m.Observe(at.Add(30*time.Minute), size, []Use{
		{a, drover.Capacity{CPU: 250}},
		{a, drover.Capacity{CPU: 250}},
		{b, drover.Capacity{CPU: 10, MemoryMB: 250}},
	})
	total := Total(1, fleet.Billing{}, at, at.Add(time.Hour))
	require.InDelta(t, 1, total, 1e-9)
	lines := m.Take(at.Add(time.Hour), "p", total)
	require.Len(t, lines, 3)
	cost := map[string]float64{}
	sum := 0.0
	for _, l := range lines {
		cost[l.Job] = l.Cost
		sum += l.Cost
		require.Equal(t, "2026-01-01", l.Day)
	}
	require.InDelta(t, 1, sum, 1e-9, "all of it is divided")
	require.InDelta(t, 0.25, cost["a"], 1e-9)
	require.InDelta(t, 0.125, cost["b"], 1e-9)
	require.InDelta(t, 0.625, cost[fleet.IdleJob], 1e-9)
	require.Empty(t, m.Take(at.Add(time.Hour), "p", 0))
	require.InDelta(t, 2, Total(1, fleet.Billing{Granularity: time.Hour}, at, at.Add(61*time.Minute)), 1e-9, "hours are paid whole")
	require.Len(t, Sum(append(lines, lines...)), 3)
}
