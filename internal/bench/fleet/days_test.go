//go:build !race

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/simulator"
)

// What a day costs in money is deterministic. How it weighs against waiting is judged in judge_test.go.
func TestCostsOfADay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		seed  uint64
		work  simulator.Workload
		ratio float64
	}{
		{"daily, large", 1, simulator.Daily(1, 12*time.Hour, simulator.Mixed(10*time.Minute), 10000), 1.06},
		{"daily", 1, simulator.Daily(1, 24*time.Hour, simulator.Mixed(10*time.Minute), 2000), 1.1},
		{"daily, the seed with the widest swings", 5, simulator.Daily(5, 24*time.Hour, simulator.Mixed(10*time.Minute), 2000), 1.1},
		{"bursty", 1, simulator.Bursty(1, 24*time.Hour, simulator.Mixed(10*time.Minute), 4000), 1.25},
		{"burst", 1, simulator.Burst(1, 3000, time.Minute, simulator.Mixed(10*time.Minute)), 1.7},
		// one machine fits two tasks, and the longest of 3,000 runs for 80 minutes,
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := simulator.Run(simulator.Config{
				Seed: tt.seed, Policy: simulator.StandardPolicy(), Cloud: simulator.StandardCloud(),
				Work: tt.work,
			})
			require.NoError(t, err)
			t.Log(res)
			require.LessOrEqual(t, res.Ratio(), tt.ratio)
		})
	}
}

// All figures that do not take long are printed, and keep their promises about sizes.
func TestFiguresOfScale(t *testing.T) {
	t.Parallel()
	told := map[string]float64{}
	tell := func(name string, value float64, _, _ string) { told[name] = value; t.Log(name, value) }
	require.NoError(t, figurePlan(t.Context(), true, clock.Wall{}.Now, tell))
	require.NoError(t, figureLatency(t.Context(), true, clock.Wall{}.Now, tell))
	require.Len(t, told, 3)
}
