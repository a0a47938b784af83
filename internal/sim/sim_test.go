package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/sim/scenario"
)

var (
	seeds  = flag.Uint64("sim.seeds", defaultSeeds, "how many seeds to try")
	first  = flag.Uint64("sim.first", 1, "the first seed")
	shrink = flag.Int("sim.shrink", 60, "how many smaller scenarios to try after a failure")
	only   = flag.Uint64("sim.seed", 0, "try only this seed, and tell what happens (with -v)")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // worlds are small and short: collecting them was most of the time
	debug.SetMemoryLimit(2 << 30)
	goleak.VerifyTestMain(m)
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	overSeeds(t, *seeds, scenario.Random)
}

// TestSeveralServers is TestSimulation with three and five servers.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	n := *seeds
	if n == defaultSeeds {
		n = defaultSeveral
	}
	overSeeds(t, n, scenario.Several)
}

// overSeeds runs the scenarios that are drawn from the seeds.
func overSeeds(t *testing.T, n uint64, draw func(seed uint64) scenario.Scenario) {
	if *only != 0 {
		r := Run(t.Context(), draw(*only), func(line string) { fmt.Println(line) })
		require.Empty(t, r.Failure)
		return
	}
	for seed := *first; seed < *first+n; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			s := draw(seed)
			r := Run(t.Context(), s, nil)
			if r.Failure != "" {
				small := Shrink(s, *shrink, func(s scenario.Scenario) Result { return Run(t.Context(), s, nil) })
				test, _, _ := strings.Cut(t.Name(), "/")
				t.Fatalf("seed=%d: %s\nreplay: go test ./internal/sim -run %s -sim.seed=%d -v\n"+
					"smaller, for testdata (-run TestScenarios):\n%s", seed, r.Failure, test, seed, small)
			}
		})
	}
}

// TestScenarios runs those that were worth keeping.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s, err := scenario.Parse(string(text))
			require.NoError(t, err)
			require.Empty(t, Run(t.Context(), s, nil).Failure)
		})
	}
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
