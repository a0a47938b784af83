package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/sim/scenario"
)

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
