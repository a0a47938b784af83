package pool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
	"github.com/drover-project/drover/internal/id"
)

// heir is the fleet of a cluster into which the archive of cluster "old" was restored, and what it did.
type heir struct {
	*pool.Core
	now  time.Time
	done []pool.Effect
}

func newHeir(rows ...fleet.Durable) *heir {
	p := policy()
	h := &heir{now: time.Unix(1_000_000, 0)}
	h.Core = pool.NewCore(h.now, pool.Config{
		Owner: "me", Former: []string{"old"}, Provider: "sim", Policies: []*fleet.Policy{p}, IDs: id.NewSeeded(1),
		Caps: provider.Capabilities{Idempotent: true, Visible: time.Second}, UserData: pool.UserData([]byte("key")),
	})
	h.Restore(h.now, rows)
	return h
}

// passes lets time pass while the cloud lists the machines.
func (h *heir) passes(d time.Duration, list ...provider.Machine) {
	for end := h.now.Add(d); h.now.Before(end); h.now = h.now.Add(10 * time.Second) {
		h.Decide(h.now)
		for _, e := range h.Effects() {
			h.done = append(h.done, e)
			if e.Kind == pool.EffectList {
				h.Listed(h.now, list, true, nil)
			}
		}
	}
}

// did returns what was done of a kind.
func (h *heir) did(kind pool.EffectKind) (list []pool.Effect) {
	for _, e := range h.done {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// of is a machine of the owner in the cloud's list, with an intent.
func of(owner, name string) provider.Machine {
	o := policy().Offerings()[0]
	return provider.Machine{
		ID: "i-" + name, Intent: name, Type: o.Type, Zone: o.Zone, State: provider.Running, CreatedAt: time.Unix(900_000, 0),
		Tags: map[string]string{fleet.TagOwner: owner, fleet.TagPool: "p", fleet.TagIntent: name, fleet.TagOffering: o.Key},
	}
}

func saved(name string) fleet.Durable {
	return fleet.Durable{
		ID: name, Pool: "p", Offering: policy().Offerings()[0].Key, State: fleet.InstanceActive, ProviderID: "i-" + name, NodeID: "n-" + name,
		Of: "old",
	}
}

// TestMachinesOfAFormerClusterAreLeftAlone: the other cluster may live. Neither those in the archive nor those that it bought since
// are destroyed, counted or asked for again, for however long.
func TestMachinesOfAFormerClusterAreLeftAlone(t *testing.T) {
	t.Parallel()
	asked := saved("asked")
	asked.ProviderID, asked.State = "", fleet.InstanceCreating
	leaves := saved("leaves")
	leaves.State, leaves.Why = fleet.InstanceDestroying, scaler.WhyIdle
	h := newHeir(saved("kept"), asked, leaves)
	stranger := of("somebody", "x")
	h.passes(2*time.Hour, of("old", "kept"), of("old", "since"), of("old", "leaves"), stranger)
	require.Empty(t, h.did(pool.EffectDestroy))
	require.Empty(t, h.did(pool.EffectCreate), "what the other cluster asked for is its own business")
	require.Empty(t, h.did(pool.EffectTag))
	for _, name := range []string{"kept", "since", "leaves"} {
		require.True(t, h.Foreign(name))
		i, _ := h.Instance(name)
		require.Equal(t, fleet.InstanceOrphaned, i.State)
		require.Contains(t, i.Reason, "of old")
	}
	h.SetDemand(policy().NodePool, work(1))
	h.passes(time.Minute, of("old", "kept"), of("old", "since"))
	require.NotEmpty(t, h.did(pool.EffectRecord), "nobody counts on them")
	h.Charge(h.now)
	require.Empty(t, h.TakeUpdate(h.now).Costs, "who has them pays them")

	h.passes(10 * time.Minute)
	_, known := h.Instance("kept")
	require.False(t, known, "the other cluster returned it")

	h = newHeir()
	h.passes(2*time.Hour, of("me", "mine"), stranger)
	require.NotEmpty(t, h.did(pool.EffectDestroy), "what never called and is surely ours is not left")
	require.Equal(t, "i-mine", h.did(pool.EffectDestroy)[0].ProviderID)
}

// TestAMachineBecomesOursWhenItsAgentCalls: it is told to the cloud until that shows it, and from then on it is as any other one.
func TestAMachineBecomesOursWhenItsAgentCalls(t *testing.T) {
	t.Parallel()
	was := saved("kept")
	was.Charged = 7
	h := newHeir(was)
	require.Error(t, h.Registered(h.now, "kept", "n-kept"), "the cloud did not list it yet")
	h.passes(20*time.Second, of("old", "kept"), of("old", "since"))
	require.NoError(t, h.Registered(h.now, "kept", "n-kept"))
	require.NoError(t, h.Registered(h.now, "since", "n-since"))
	for _, node := range []string{"n-kept", "n-since"} {
		h.Reported(h.now, node, pool.Report{Ready: true, Work: 1})
	}
	h.passes(time.Minute, of("old", "kept"), of("old", "since")) // what was said is not to be seen yet
	i, _ := h.Instance("kept")
	require.Equal(t, fleet.InstanceActive, i.State)
	require.Empty(t, i.Of)
	require.InDelta(t, 7, i.Charged, 1e-9)
	require.Len(t, h.Instances("p"), 2)
	tags := h.did(pool.EffectTag)
	require.Greater(t, len(tags), 2, "it is said again")
	require.Equal(t, map[string]string{fleet.TagOwner: "me"}, tags[0].Tags)
	told := len(tags)
	h.passes(time.Minute, of("me", "kept"), of("me", "since"))
	require.Len(t, h.did(pool.EffectTag), told)
	require.Empty(t, h.did(pool.EffectDestroy))

	for _, node := range []string{"n-kept", "n-since"} {
		h.Reported(h.now, node, pool.Report{Ready: true})
	}
	h.passes(10*time.Minute, of("me", "kept"), of("me", "since"))
	require.NotEmpty(t, h.did(pool.EffectDrain), "an idle one is returned as any other")
}

// TestAClaimThatWasNotWrittenDown: the cloud has our name of a machine that the log still has as another cluster's.
func TestAClaimThatWasNotWrittenDown(t *testing.T) {
	t.Parallel()
	h := newHeir(saved("kept"))
	h.passes(20*time.Second, of("me", "kept"))
	require.False(t, h.Foreign("kept"))
	i, _ := h.Instance("kept")
	require.Equal(t, fleet.InstanceBooting, i.State)
}

// TestAPersonMayDestroyWhatIsAnotherClusters, also over a change of the leader.
func TestAPersonMayDestroyWhatIsAnotherClusters(t *testing.T) {
	t.Parallel()
	h := newHeir(saved("kept"))
	h.passes(20*time.Second, of("old", "kept"))
	require.ErrorContains(t, h.Behave(h.now, "kept", fleet.BehaviorDrain, "a test"), "is of old: it can only be killed here")
	require.NoError(t, h.Kill(h.now, "kept", "that cluster is gone"))
	h.passes(20*time.Second, of("old", "kept"))
	require.Len(t, h.did(pool.EffectDestroy), 1)
	i, _ := h.Instance("kept")
	require.Equal(t, pool.WhyKilled, i.Why)

	next := newHeir(i.Durable)
	next.passes(20*time.Second, of("old", "kept"))
	require.Len(t, next.did(pool.EffectDestroy), 1)
	ended := of("old", "kept")
	ended.State = provider.Terminated
	next.passes(2*time.Minute, ended)
	_, known := next.Instance("kept")
	require.False(t, known)
}
