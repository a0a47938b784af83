package office

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

func TestAPoolIsPutOnlyIfItCanBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.PutPool(t.Context(), policy("q")))
	require.Equal(t, fleet.SourceAPI, w.pools["q"].Source)
	require.Equal(t, "put by operator", w.history())

	requireCode(t, drover.Invalid, w.PutPool(t.Context(), &fleet.Policy{Name: "r"}), "fleet[r]")
	elsewhere := policy("r")
	elsewhere.Region = "south"
	requireCode(t, drover.Invalid, w.PutPool(t.Context(), elsewhere), `fleet[r].Region: is "south", but provider "cloud" has "north"`)
	w.problems["cloud"] = "no credentials"
	requireCode(t, drover.Invalid, w.PutPool(t.Context(), policy("r")), "fleet[r].Provider: no credentials")
	clear(w.problems)
	w.down = drover.Errorf(drover.NotLeader, "not here")
	requireCode(t, drover.NotLeader, w.PutPool(t.Context(), policy("r")), "not here")
	w.down, w.fails = nil, drover.Errorf(drover.Unavailable, "no quorum")
	requireCode(t, drover.Unavailable, w.PutPool(t.Context(), policy("r")), "no quorum")
	require.NotContains(t, w.pools, "r")
	require.Equal(t, "put by operator", w.history(), "what was not done is not in the audit log")
}

// TestAPoolIsReplacedAsItWasSeen: who saw an older one changes nothing.
func TestAPoolIsReplacedAsItWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pools["p"].ModifyIndex = 7
	requireCode(t, drover.Conflict, w.ReplacePool(t.Context(), policy("p"), 6), "it is at 7 by now")
	requireCode(t, drover.Conflict, w.ReplacePool(t.Context(), policy("p"), 0), "it is at 7 by now")
	requireCode(t, drover.Conflict, w.ReplacePool(t.Context(), policy("new"), 7), "it is at 0 by now")
	require.Empty(t, w.history())
	require.NoError(t, w.ReplacePool(t.Context(), policy("p"), 7))
	require.NoError(t, w.ReplacePool(t.Context(), policy("new"), 0))
}

// A change of another pool that came between was told as one of this pool; the log has one version for all.
func TestAPoolIsReplacedBesideChangesOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pools["p"].ModifyIndex = 7
	require.NoError(t, w.PutPool(t.Context(), policy("q")))
	changes := func(name string, times int) {
		w.before = func() {
			if times--; times >= 0 {
				w.pools[name].ModifyIndex = fleet.PoolsVersion(w.FleetPools()) + 1
			}
		}
	}
	changes("q", 3)
	require.NoError(t, w.ReplacePool(t.Context(), policy("p"), 7))
	at := w.pools["p"].ModifyIndex
	changes("p", 1)
	requireCode(t, drover.Conflict, w.ReplacePool(t.Context(), policy("p"), at), "read it again")
	changes("q", 1000)
	requireCode(t, drover.Conflict, w.ReplacePool(t.Context(), policy("p"), w.pools["p"].ModifyIndex), "changed")
}

func TestAPoolOfTheConfigurationIsChangedThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pools["p"].Source, w.configured = fleet.SourceConfig, []*fleet.Policy{policy("p")}
	requireCode(t, drover.Conflict, w.PutPool(t.Context(), policy("p")), "change it there")
	requireCode(t, drover.Conflict, w.DeletePool(t.Context(), "p"), "remove it there")
	w.configured = nil // it is not in the configuration any more
	require.NoError(t, w.DeletePool(t.Context(), "p"))
	require.NoError(t, w.PutPool(t.Context(), policy("p")))
	require.Equal(t, fleet.SourceAPI, w.pools["p"].Source)
	require.False(t, w.pools["p"].Retiring)
}

func TestAPauseSurvivesAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.pools["p"]
	require.NoError(t, w.Pause(t.Context(), "p", fleet.Pause{Creates: true, Reason: "dear"}))
	require.False(t, before.PauseCreates, "what is stored is never changed in place")
	require.NoError(t, w.PutPool(t.Context(), policy("p")))
	require.True(t, w.pools["p"].PauseCreates)
	require.Equal(t, "dear", w.pools["p"].PauseReason)
	require.NoError(t, w.Pause(t.Context(), "p", fleet.Pause{}))
	require.False(t, w.pools["p"].PauseCreates)
	require.Equal(t, "pause creates=true destroys=false by operator, put by operator, resume by operator", w.history())
	requireCode(t, drover.NotFound, w.Pause(t.Context(), "x", fleet.Pause{}), `no pool "x"`)
	requireCode(t, drover.NotFound, w.DeletePool(t.Context(), "x"), `no pool "x"`)
}

func TestAPoolEndsWithItsLastMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rows["i"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "i", Pool: "p", State: fleet.InstanceActive}}
	require.False(t, Retiring(w))
	require.Empty(t, Ended(w))
	require.NoError(t, w.DeletePool(t.Context(), "p"))
	require.True(t, Retiring(w))
	require.Empty(t, Ended(w))
	w.rows["i"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "i", Pool: "p", State: fleet.InstanceGone}}
	require.Equal(t, []string{"p"}, Ended(w))
}

func TestTheConfigurationIsStoredAtEachStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clear(w.pools)
	configured := []*fleet.Policy{policy("a"), policy("b")}
	put := Configured(w, configured)
	require.Len(t, put, 2)
	require.NoError(t, w.PutPools(t.Context(), put))
	require.Empty(t, Configured(w, configured), "nothing changed")

	w.pools["own"] = &fleet.Pool{Name: "own", Policy: policy("own"), Source: fleet.SourceAPI}
	w.pools["a"].PauseDestroys, w.pools["a"].PauseReason = true, "careful"
	changed := policy("a")
	changed.Max = 3
	put = Configured(w, []*fleet.Policy{changed})
	require.Len(t, put, 2)
	require.Equal(t, "a", put[0].Name)
	require.Equal(t, 3, put[0].Policy.Max)
	require.True(t, put[0].PauseDestroys)
	require.Equal(t, "careful", put[0].PauseReason)
	require.Equal(t, "b", put[1].Name)
	require.True(t, put[1].Retiring, "it is not in the configuration any more")
	require.False(t, w.pools["b"].Retiring)
	require.NoError(t, w.PutPools(t.Context(), put))
	put = Configured(w, configured)
	require.Len(t, put, 2, "both are there again")
	require.False(t, put[1].Retiring)
	taken := policy("own")
	require.Equal(t, fleet.SourceConfig, Configured(w, []*fleet.Policy{taken})[0].Source, "the configuration takes a pool over")
}

func TestHowPoolsStand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.machine()
	w.want(3)
	w.step(time.Second)
	w.pools["q"] = &fleet.Pool{Name: "q", Policy: policy("q")}
	w.pools["q"].Policy.Provider = "none"
	w.problems["none"] = "there is no such provider"
	w.pools["p"].Policy.Budget = fleet.Budget{PerHour: 0.05, PerDay: 1}
	w.costs = []*fleet.Cost{
		{Day: "2027-01-14", Pool: "p", Cost: 100}, {Day: "2027-01-15", Pool: "p", Cost: 2}, {Day: "2027-01-15", Pool: "p", Job: "j", Cost: 3},
	}
	list, err := w.Pools(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, map[string]int{"booting": 3}, list[0].Machines)
	require.InDelta(t, 0.3, list[0].PerHour, 0.001, "two were bought beside %s", i.ID)
	require.InDelta(t, 5, list[0].Today, 0.001)
	require.Contains(t, list[0].Alert, "an hour, the budget is")
	require.Len(t, list[0].Waiting, 1)
	require.Equal(t, "j/g", list[0].Waiting[0].Class)
	require.Equal(t, "there is no such provider", list[1].Problem)

	w.pools["p"].Policy.Budget = fleet.Budget{PerDay: 1}
	one, err := w.Pool(t.Context(), "p")
	require.NoError(t, err)
	require.Contains(t, one.Alert, "today, the budget is")
	_, err = w.Pool(t.Context(), "x")
	requireCode(t, drover.NotFound, err, `no pool "x"`)
	w.down = drover.Errorf(drover.Unavailable, "no answer")
	_, err = w.Pool(t.Context(), "p")
	requireCode(t, drover.Unavailable, err, "no answer")
}

// TestAPoolSaysHowItsLastCreateFailed: F3 of the review of 2026-11-22. With a dockerd that had lost its bridge the list of pools said
// nothing, while work waited for machines that were never made.
func TestAPoolSaysHowItsLastCreateFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	failed := func() string {
		st, err := w.Pool(t.Context(), "p")
		require.NoError(t, err)
		return st.Failed
	}
	w.step(time.Minute)
	w.refuses = &provider.Error{Kind: provider.Transient, Message: "could not find bridge docker0"}
	w.want(1)
	w.step(time.Minute)
	w.now = w.now.Add(7 * time.Second)
	require.Contains(t, failed(), "a create failed 7s ago: ")
	require.Contains(t, failed(), "could not find bridge docker0")
	w.core.SetDemand("p", nil)
	w.step(time.Second)
	require.Empty(t, failed(), "nothing waits for it")
}
