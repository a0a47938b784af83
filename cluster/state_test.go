package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEpochsRise(t *testing.T) {
	t.Parallel()
	first := NextEpoch("")
	second := NextEpoch(first)
	require.Less(t, first, second)
	require.Less(t, "", first)
	require.Less(t, NextEpoch("00000000000000000009"), NextEpoch("00000000000000000010"))
}
