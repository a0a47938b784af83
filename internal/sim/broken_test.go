//go:build !race

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sim/scenario"
)

// Each broken rule is found within some seeds, by the check that is meant to. What takes more luck begins where there is some.
func TestBrokenRulesAreFound(t *testing.T) {
	t.Parallel()
	const within = 150 // seeds
	for broken, found := range map[mutation]struct {
		from uint64
		says string
	}{
		obedient:  {1, "obeys state"},
		hasty:     {1, "began to lead"},
		outdated:  {1, "after its lease was taken away"},
		greedy:    {1, "was handed out"},
		forgetful: {1, "handed out"},
		impatient: {1, "is ended as idle"},
		unasked:   {280, "a plan"},
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			for seed := found.from; seed < found.from+within; seed++ {
				if r := run(t.Context(), scenario.Several(seed), nil, broken, alone{}); r.Failure != "" {
					require.Contains(t, r.Failure, found.says, "seed=%d", seed)
					t.Logf("found with seed %d: %s", seed, r.Failure)
					return
				}
			}
			require.Fail(t, "it was not found", "%d seeds from %d on", within, found.from)
		})
	}
}

// TestTheServerDiesBetweenAClaimAndItsRecord: the moments in which a runner could be handed out twice are hit in each few
// scenarios, not by luck.
func TestTheServerDiesBetweenAClaimAndItsRecord(t *testing.T) {
	t.Parallel()
	const scenarios = 40
	var hits [lastTrapPoint + 1]int
	for seed := range uint64(scenarios) {
		r := Run(t.Context(), scenario.Random(seed+1), nil)
		require.Empty(t, r.Failure, "seed=%d", seed+1)
		for i, n := range r.Trapped {
			hits[i] += n
		}
	}
	t.Logf("hits by point: %v", hits)
	for point := written; point <= lastTrapPoint; point++ {
		require.Positive(t, hits[point], "point %d: %v", point, hits)
	}
}
