package seedtest

import (
	"context"
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

// Main is the TestMain of a package that simulates.
func Main(m *testing.M) {
	debug.SetGCPercent(800) // worlds are small and short: collecting them was most of the time
	debug.SetMemoryLimit(2 << 30)
	goleak.VerifyTestMain(m)
}

// Seeds is what the flags say of a package's seeds.
type Seeds struct {
	Count  *uint64 // how many there are to try
	first  *uint64
	only   *uint64 // 0: all
	shrink *int
}

// Flags defines the flags, with how many seeds there are without one. It is for a variable of the test's package.
func Flags(standard uint64) Seeds {
	return Seeds{
		Count:  flag.Uint64("sim.seeds", standard, "how many seeds to try"),
		first:  flag.Uint64("sim.first", 1, "the first seed"),
		shrink: flag.Int("sim.shrink", 60, "how many smaller scenarios to try after a failure"),
		only:   flag.Uint64("sim.seed", 0, "try only this seed, and tell what happens (with -v)"),
	}
}

// Simulation is what plays a scenario: Run says what failed, "" if nothing did, and Shrink finds a smaller one that still fails.
type Simulation struct {
	Folder string // of the package, as go test takes it
	Run    func(ctx context.Context, s scenario.Scenario, tell func(line string)) (failure string)
	Shrink func(ctx context.Context, s scenario.Scenario, tries int) fmt.Stringer
}

// Play plays the first n of the scenarios that are drawn from the seeds, or the one that a flag asks for. A failure says how to replay it.
func (f Seeds) Play(t *testing.T, n uint64, draw func(seed uint64) scenario.Scenario, of Simulation) {
	if *f.only != 0 {
		require.Empty(t, of.Run(t.Context(), draw(*f.only), func(line string) { fmt.Println(line) }))
		return
	}
	for seed := *f.first; seed < *f.first+n; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			s := draw(seed)
			if failure := of.Run(t.Context(), s, nil); failure != "" {
				test, _, _ := strings.Cut(t.Name(), "/")
				t.Fatalf("seed=%d: %s\nreplay: go test %s -run %s -sim.seed=%d -v\nsmaller, for testdata (-run TestScenarios):\n%s",
					seed, failure, of.Folder, test, seed, of.Shrink(t.Context(), s, *f.shrink))
			}
		})
	}
}

// Kept plays the scenarios of the package's testdata, which were worth keeping. There is at least one.
func Kept(t *testing.T, of Simulation) {
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
			require.Empty(t, of.Run(t.Context(), s, nil))
		})
	}
}
