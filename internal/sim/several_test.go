package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sim/scenario"
)

// Each broken rule is found within some seeds, by the check that is meant to.
func TestBrokenRulesAreFound(t *testing.T) {
	t.Parallel()
	const within = 150 // seeds
	for broken, says := range map[mutation]string{
		obedient:  "obeys state",
		hasty:     "began to lead",
		outdated:  "after its lease was taken away",
		greedy:    "was handed out",
		forgetful: "handed out",
		impatient: "is ended as idle",
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= within; seed++ {
				if r := run(t.Context(), scenario.Several(seed), nil, broken); r.Failure != "" {
					require.Contains(t, r.Failure, says, "seed=%d", seed)
					t.Logf("found with seed %d: %s", seed, r.Failure)
					return
				}
			}
			require.Fail(t, "it was not found", "seeds up to %d", within)
		})
	}
}

// Of several servers, too, the same seed gives the same.
func TestTheSameSeedOfSeveralGivesTheSame(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 4; seed++ {
		s := scenario.Several(seed)
		one, two := Run(t.Context(), s, nil), Run(t.Context(), s, nil)
		require.Equal(t, one, two, "seed=%d", seed)
		back, err := scenario.Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, back)
	}
}
