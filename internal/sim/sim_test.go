package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/sim/seedtest"
)

var seeds = seedtest.Flags(defaultSeeds)

func TestMain(m *testing.M) { seedtest.Main(m) }

// simulation is this package's.
var simulation = seedtest.Simulation{
	Folder: "./internal/sim",
	Run: func(ctx context.Context, s scenario.Scenario, tell func(string)) string {
		return Run(ctx, s, tell).Failure
	},
	Shrink: func(ctx context.Context, s scenario.Scenario, tries int) fmt.Stringer {
		return Shrink(s, tries, func(s scenario.Scenario) Result { return Run(ctx, s, nil) })
	},
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	seeds.Play(t, *seeds.Count, scenario.Random, simulation)
}

// TestSeveralServers is TestSimulation with three and five servers.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	n := *seeds.Count
	if n == defaultSeeds {
		n = defaultSeveral
	}
	seeds.Play(t, n, scenario.Several, simulation)
}

// TestScenarios plays those that were worth keeping.
func TestScenarios(t *testing.T) {
	t.Parallel()
	seedtest.Kept(t, simulation)
}

func TestTheSameSeedGivesTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		s := scenario.Random(seed)
		one, two := Run(t.Context(), s, nil), Run(t.Context(), s, nil)
		require.Equal(t, one, two, "seed=%d", seed)
		back, err := scenario.Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, back)
	}
}
