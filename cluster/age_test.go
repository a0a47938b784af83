package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAges(t *testing.T) {
	t.Parallel()
	none := (*State)(nil).Age()
	first := (&State{ID: "a", Epoch: NextEpoch("")}).Age()
	restored := (&State{ID: "a", Epoch: NextEpoch(NextEpoch(""))}).Age()
	other := (&State{ID: "b", Epoch: NextEpoch("")}).Age()
	require.Equal(t, none, (&State{Epoch: NextEpoch("")}).Age(), "of a server that is alone, also after a restore: its indexes only rise")
	order := []string{none, first, restored}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, i < j, Before(a, b), "%q %q", a, b)
		}
	}
	require.False(t, Before(other, restored), "another cluster began anew")
	require.False(t, Before(restored, other))
}
