package rollouts

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/sim"
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

// TestRollouts plays the histories that are drawn from the seeds.
func TestRollouts(t *testing.T) {
	t.Parallel()
	if *only != 0 {
		r := Run(t.Context(), Random(*only), func(line string) { fmt.Println(line) })
		require.Empty(t, r.Failure)
		return
	}
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			s := Random(seed)
			r := Run(t.Context(), s, nil)
			if r.Failure != "" {
				small := sim.Shrink(s, *shrink, func(s scenario.Scenario) sim.Result { return Run(t.Context(), s, nil) })
				t.Fatalf("seed=%d: %s\nreplay: go test ./internal/sim/rollouts -run TestRollouts -sim.seed=%d -v\n"+
					"smaller, for testdata (-run TestScenarios):\n%s", seed, r.Failure, seed, small)
			}
		})
	}
}

// TestScenarios plays those that were worth keeping.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
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
	for seed := range uint64(5) {
		s := Random(seed)
		require.Equal(t, Run(t.Context(), s, nil), Run(t.Context(), s, nil), "seed=%d", seed)
		back, err := scenario.Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, back)
	}
}
