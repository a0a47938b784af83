package office

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// TestAFileIsApplied: what would change is told, and then done unless the pools changed meanwhile.
func TestAFileIsApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pools = map[string]*fleet.Pool{
		"p":    {Name: "p", Policy: policy("p"), Source: fleet.SourceConfig, ModifyIndex: 4},
		"old":  {Name: "old", Policy: policy("old"), Source: fleet.SourceConfig, ModifyIndex: 5},
		"made": {Name: "made", Policy: policy("made"), Source: fleet.SourceAPI, ModifyIndex: 6},
	}
	w.rows["i"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "i", Pool: "p", State: fleet.InstanceActive}}
	_, err := w.Apply(t.Context(), fleet.Application{Preview: true})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "the configuration of server s1 has no pool block")

	changed := policy("p")
	changed.Max, changed.Image = 3, "another"
	w.configured = []*fleet.Policy{changed, policy("new")}
	would, err := w.Apply(t.Context(), fleet.Application{Preview: true})
	require.NoError(t, err)
	require.Equal(t, fleet.Applied{Server: "s1", Version: 6, Changes: []fleet.Change{
		{Pool: "p", What: fleet.ChangeKeys, Machines: 1, Replaces: true, Keys: []fleet.KeyChange{
			{Key: "Image", Now: `"img"`, Next: `"another"`}, {Key: "Max", Next: "3"},
		}},
		{Pool: "new", What: fleet.ChangeAdd},
		{Pool: "old", What: fleet.ChangeRetire},
	}}, would)
	require.Nil(t, w.pools["new"], "it was a preview")
	require.Equal(t, []string{"pool p differs in Image, Max", "pool new is new", "pool old ends"}, Differs(w, w.configured))

	_, err = w.Apply(t.Context(), fleet.Application{Version: 5})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	done, err := w.Apply(t.Context(), fleet.Application{Version: 6})
	require.NoError(t, err)
	require.True(t, done.Applied)
	require.Equal(t, uint64(7), done.Version)
	require.Equal(t, 3, w.pools["p"].Policy.Max)
	require.True(t, w.pools["old"].Retiring)
	require.False(t, w.pools["made"].Retiring, "it was made over the API")
	require.Empty(t, Differs(w, w.configured))
	audit, err := w.Audit(t.Context(), "p", "", 10)
	require.NoError(t, err)
	require.Equal(t, "apply", audit[0].What)
	require.Equal(t, "pool p differs in Image, Max, by the configuration of s1", audit[0].Reason)
	again, err := w.Apply(t.Context(), fleet.Application{})
	require.NoError(t, err)
	require.False(t, again.Applied)
	require.Empty(t, again.Changes)
}

func TestAFileThatIsWrongNamesTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad, nobody, far := policy("p"), policy("p"), policy("p")
	bad.Max, bad.Min = 1, 2
	nobody.Provider = "nobody"
	far.Region = "south"
	for want, pools := range map[string][]*fleet.Policy{
		"Max: must be at least Min":                             {bad},
		`fleet[p].Provider: there is no provider "nobody"`:      {nobody},
		`fleet[p].Region: is "south", but provider "cloud" has`: {far},
		`Pools[1].Name: there are two pools "p"`:                {policy("p"), policy("p")},
		"Pools[0]: must not be null":                            {nil},
	} {
		_, err := w.Apply(t.Context(), fleet.Application{Pools: pools})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), want)
		require.ErrorContains(t, err, want)
	}
	require.Len(t, w.pools, 1)
}

// TestTheAuditIsOfAllServers: the entries of all, the newest last, and who did not answer.
func TestTheAuditIsOfAllServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entry := func(what string, ago time.Duration) fleet.Audit {
		return fleet.Audit{What: what, Pool: "p", At: w.now.Add(-ago)}
	}
	w.audit.Add(entry("second", 2*time.Hour))
	w.deps.Others = func(_ context.Context, q AuditQuery) ([]fleet.Audit, []string) {
		require.Equal(t, AuditQuery{"p", "", 2 * auditKept}, q, "else it is not known what is missing")
		return []fleet.Audit{entry("first", 3*time.Hour), entry("third", time.Hour)}, []string{"s2.global"}
	}
	list, err := w.Audit(t.Context(), "p", "", 2)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, "second", list[0].What)
	require.Equal(t, "third", list[1].What)
	require.Equal(t, "server s2.global does not answer: what it did is missing here", list[2].Reason)
}
