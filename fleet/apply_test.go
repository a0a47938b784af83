package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	policy := func() *Policy {
		p := &Policy{Name: "p", Provider: "x", Zones: []string{"a"}, Types: []InstanceType{{Name: "t", Price: 1}}, UserData: "secret"}
		p.Canonicalize()
		return p
	}
	a, b := policy(), policy()
	require.Empty(t, Differences(a, b))
	b.Tags, b.Zones = map[string]string{}, slices.Clone(b.Zones)
	require.Empty(t, Differences(a, b), "empty is as not set")
	b.Types[0].Price, b.Idle, b.UserData, b.Tags = 2, time.Hour, "another", map[string]string{"k": "v"}
	a.Max = 3
	got := map[string]KeyChange{}
	for _, c := range Differences(a, b) {
		got[c.Key] = c
	}
	require.Equal(t, KeyChange{"Types[0].Price", "1", "2"}, got["Types[0].Price"])
	require.Equal(t, KeyChange{"Max", "3", ""}, got["Max"])
	require.Equal(t, KeyChange{"Tags.k", "", `"v"`}, got["Tags.k"])
	require.Equal(t, "3600000000000", got["Idle"].Next)
	require.Equal(t, KeyChange{"UserData", "(8 bytes)", "(9 bytes)"}, got["UserData"])
	require.Len(t, got, 5)
}

func TestPoolsVersion(t *testing.T) {
	t.Parallel()
	require.Zero(t, PoolsVersion(slices.Values([]*Pool(nil))))
	require.Equal(t, uint64(7), PoolsVersion(slices.Values([]*Pool{{ModifyIndex: 3}, {ModifyIndex: 7}, {ModifyIndex: 5}})))
}
