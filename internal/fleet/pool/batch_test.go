package pool_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// shared is a world as EC2 is: a call makes a batch of machines with equal user data.
func shared(cfg sim.Config) *world {
	cfg.Caps.Shared, cfg.Caps.Visible = true, 10*time.Second
	cfg.Caps.Creates = provider.Rate{PerSecond: 2, Burst: 5}
	cfg.Caps.Rates = map[provider.Call]provider.Rate{provider.CallCreate: {PerSecond: 2, Burst: 1000}}
	w := newWorld(cfg)
	w.policy = policy()
	w.policy.UserData = "all the same"
	return w
}

func (w *world) creates() (n int) {
	w.cloud.With(func(_ time.Time, c *sim.Cloud) { n = c.Calls[provider.CallCreate] })
	return n
}

// Forty machines are a few calls of up to ten, at once: one by one they would take 18 s.
func TestABurstIsBoughtInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shared(sim.Config{Latency: 100 * time.Millisecond})
		p, stop := w.run(t)
		defer stop()
		time.Sleep(10 * time.Second)
		w.change(func() { w.demand = work(40) })
		time.Sleep(time.Second)
		require.Equal(t, 40, w.running())
		require.LessOrEqual(t, w.creates(), 5)
		time.Sleep(2 * time.Minute)
		tagged := 0
		list, _, err := w.cloud.List(t.Context(), "")
		require.NoError(t, err)
		for _, m := range list {
			_, _, several := provider.BatchOf(m.Intent)
			require.Equal(t, several, m.Tags[fleet.TagBatch] != "")
			if m.Tags[fleet.TagIntent] == m.Intent {
				tagged++
			}
		}
		require.Equal(t, 40, tagged, "a list finds tags missing, and they are set")
		for _, i := range instances(t, p) {
			require.NotEmpty(t, i.NodeID)
		}
		time.Sleep(10 * time.Minute)
		require.Zero(t, w.running())
		require.Empty(t, w.intents)
	})
}

// What a person wrote for one machine alone is bought alone, as fast as the cloud takes calls.
func TestUserDataOfOneMachineIsBoughtAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shared(sim.Config{Latency: 100 * time.Millisecond})
		w.policy.UserData = "my own ${token}"
		_, stop := w.run(t)
		defer stop()
		time.Sleep(10 * time.Second)
		w.change(func() { w.demand = work(11) })
		time.Sleep(time.Second)
		require.Less(t, w.running(), 8)
		time.Sleep(5 * time.Second)
		require.Equal(t, 11, w.running())
		require.Equal(t, 11, w.creates(), "and none was refused")
	})
}

// The server is killed between a create and its answer. The next one asks for the whole batch again, in one call.
func TestACrashInABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shared(sim.Config{Latency: 2 * time.Second, Boot: time.Minute})
		_, stop := w.run(t)
		time.Sleep(10 * time.Second)
		w.change(func() { w.demand = work(10) })
		time.Sleep(500 * time.Millisecond)
		stop()
		before := w.creates()
		require.Less(t, before, 4)
		require.Equal(t, 10, w.running())
		require.Len(t, w.intents, 10)
		p, stop := w.run(t)
		defer stop()
		time.Sleep(30 * time.Second)
		require.Equal(t, 10, w.running())
		require.Equal(t, 2*before, w.creates(), "each was asked for again once")
		list := instances(t, p)
		require.Len(t, list, 10)
		for _, i := range list {
			require.NotEmpty(t, i.ProviderID)
		}
	})
}

// Of a batch only a part can be had: the rest is known not to be made at once, and bought when there is room again.
func TestABatchThatIsMadeInPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shared(sim.Config{Latency: 100 * time.Millisecond, Quotas: map[string]int64{"c": 4}})
		w.policy.Types[0].QuotaGroup = "c"
		p, stop := w.run(t)
		defer stop()
		time.Sleep(10 * time.Second)
		w.change(func() { w.demand = work(10) })
		time.Sleep(time.Second)
		list := instances(t, p)
		require.Equal(t, w.running(), len(list), "nothing is awaited that was not made")
		require.NotEmpty(t, list)
		require.Less(t, len(list), 10)
	})
}

// A batch is as large as its tokens fit into the user data.
func TestABatchFitsItsUserData(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shared(sim.Config{Latency: 100 * time.Millisecond, Caps: provider.Capabilities{UserDataMax: 1000}})
		w.data = func(_ *fleet.Policy, intent string) string {
			b, _, _ := provider.BatchOf(intent)
			return strings.Repeat("t", 300*max(b.Size, 1))
		}
		_, stop := w.run(t)
		defer stop()
		time.Sleep(10 * time.Second)
		w.change(func() { w.demand = work(4) })
		time.Sleep(time.Second)
		require.Equal(t, 4, w.running())
		several := 0
		for intent := range w.intents {
			if b, _, ok := provider.BatchOf(intent); ok {
				require.Equal(t, 2, b.Size)
				several++
			}
		}
		require.Positive(t, several)
	})
}
