package id_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/id"
)

func TestSeededIDsRepeat(t *testing.T) {
	t.Parallel()
	one, two, other := id.NewSeeded(1), id.NewSeeded(1), id.NewSeeded(2)
	seen := map[string]bool{}
	for range 1000 {
		x := one.New()
		require.Equal(t, x, two.New())
		require.NotEqual(t, x, other.New())
		require.True(t, id.Valid(x), x)
		require.False(t, seen[x])
		seen[x] = true
	}
}

func TestRandomIDs(t *testing.T) {
	t.Parallel()
	a, b := id.Random{}.New(), id.Random{}.New()
	require.True(t, id.Valid(a) && id.Valid(b))
	require.NotEqual(t, a, b)
	require.Equal(t, byte('4'), a[14], "version 4")
	require.Contains(t, "89ab", string(a[19]), "RFC 9562's variant")
}

func TestValid(t *testing.T) {
	t.Parallel()
	const good = "0b8f6a0e-3d3f-4c55-9d28-6a7f0c3a1b2c"
	require.True(t, id.Valid(good))
	for _, bad := range []string{
		"", good[1:], good + "0", "../../../../../../../../../etc/passwd", "0B8F6A0E-3d3f-4c55-9d28-6a7f0c3a1b2c",
		"0b8f6a0e03d3f04c5509d2806a7f0c3a1b2c", "0b8f6a0e-3d3f-4c55-9d28-6a7f0c3a1b2-",
	} {
		require.False(t, id.Valid(bad), bad)
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	require.Equal(t, id.Seed("a"), id.Seed("a"))
	require.NotEqual(t, id.Seed("a"), id.Seed("b"))
	require.EqualValues(t, uint64(0xcbf29ce484222325), id.Seed(""), "FNV-1a's offset")
}
