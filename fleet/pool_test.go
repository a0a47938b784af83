package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesAfterARestore: what one's own state had bought stays one's own, what another cluster's had does not become it.
func TestNamesAfterARestore(t *testing.T) {
	t.Parallel()
	who := func(owner string, also []string, former ...string) *Identity {
		return &Identity{Owner: owner, Key: []byte(owner), Also: also, Former: former}
	}
	for name, x := range map[string]struct{ present, archived, want *Identity }{
		"the same":                    {who("a", nil), who("a", nil), who("a", nil)},
		"another cluster's":           {who("b", nil), who("a", nil), who("b", nil, "a")},
		"twice":                       {who("b", nil, "a"), who("a", nil), who("b", nil, "a")},
		"one's own after another's":   {who("b", nil, "a"), who("b", nil), who("b", nil, "a")},
		"a heritage of two":           {who("c", nil), who("b", nil, "a"), who("c", nil, "a", "b")},
		"what a person called theirs": {who("b", []string{"a"}), who("a", nil), who("b", []string{"a"})},
		"a name of theirs":            {who("b", []string{"x"}), who("a", []string{"x"}), who("b", []string{"a", "x"})},
		"back at the first":           {who("a", nil), who("b", nil, "a"), who("a", nil, "b")},
		"an empty state":              {nil, who("a", []string{"x"}), who("", nil, "a", "x")},
		"an archive without a fleet":  {who("b", nil, "a"), nil, who("b", nil, "a")},
		"nothing":                     {},
	} {
		got := Restored(x.present, x.archived)
		if x.want != nil && x.archived != nil {
			x.want.Key = x.archived.Key
			for _, list := range [][]string{got.Also, got.Former} {
				require.NotContains(t, list, "", name)
			}
			require.ElementsMatch(t, x.want.Also, got.Also, name)
			require.ElementsMatch(t, x.want.Former, got.Former, name)
			require.Equal(t, x.want.Owner, got.Owner, name)
			require.Equal(t, x.want.Key, got.Key, name)
			continue
		}
		require.Equal(t, x.want, got, name)
	}

	b := who("b", []string{"x"}, "a", "c")
	called := b.Called("a")
	require.Equal(t, Identity{Owner: "b", Key: b.Key, Also: []string{"x", "a"}, Former: []string{"c"}}, called)
	require.Equal(t, []string{"a", "c"}, b.Former, "a value that is in the store does not change")
	require.True(t, called.Owns("a") && called.Owns("b") && called.Owns("x"))
	require.False(t, called.Owns("c") || called.Owns(""))
}
