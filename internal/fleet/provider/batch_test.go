package provider_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
)

func TestIntentsKnowTheirBatch(t *testing.T) {
	t.Parallel()
	b := provider.Batch{ID: id.Random{}.New(), Size: 12}
	for k, intent := range b.Intents() {
		of, n, ok := provider.BatchOf(intent)
		require.True(t, ok)
		require.Equal(t, k, n)
		require.Equal(t, b, of)
	}
	back, ok := provider.ParseBatch(b.String())
	require.True(t, ok)
	require.Equal(t, b, back)
	for _, alone := range []string{"", "a", b.ID, "a-1of1", "a-2of2", "a-01of2", "a-1of02", "-0of2", "a-0of", "a-0of2000", "a-0of2 "} {
		_, _, ok := provider.BatchOf(alone)
		require.False(t, ok, alone)
	}
	for _, bad := range []string{"", "a", "a/", "/2", "a/1", "a/-2", "a/02", "a/2000", "a/2/3"} {
		_, ok := provider.ParseBatch(bad)
		require.False(t, ok, bad)
	}
}
