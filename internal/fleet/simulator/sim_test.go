package simulator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSimulationSmall(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 1, Policy: StandardPolicy(), Cloud: StandardCloud(), Work: Poisson(1, 4*time.Hour, Mixed(5*time.Minute), 600)}
	a, err := Run(cfg)
	require.NoError(t, err)
	t.Log(a)
	b, err := Run(cfg)
	require.NoError(t, err)
	require.Equal(t, a.Hash, b.Hash)
}
