package rollouts

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sim"
	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/sim/seedtest"
)

var seeds = seedtest.Flags(defaultSeeds)

func TestMain(m *testing.M) { seedtest.Main(m) }

// simulation is this package's.
var simulation = seedtest.Simulation{
	Folder: "./internal/sim/rollouts",
	Run: func(ctx context.Context, s scenario.Scenario, tell func(string)) string {
		return Run(ctx, s, tell).Failure
	},
	Shrink: func(ctx context.Context, s scenario.Scenario, tries int) fmt.Stringer {
		return sim.Shrink(s, tries, func(s scenario.Scenario) sim.Result { return Run(ctx, s, nil) })
	},
}

// TestRollouts plays the histories that are drawn from the seeds.
func TestRollouts(t *testing.T) {
	t.Parallel()
	seeds.Play(t, *seeds.Count, Random, simulation)
}

// TestScenarios plays those that were worth keeping.
func TestScenarios(t *testing.T) {
	t.Parallel()
	seedtest.Kept(t, simulation)
}

func TestTheSameSeedGivesTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		s := Random(seed)
		require.Equal(t, Run(t.Context(), s, nil), Run(t.Context(), s, nil), "seed=%d", seed)
		back, err := scenario.Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, back)
	}
}
