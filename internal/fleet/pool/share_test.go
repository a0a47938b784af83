package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// dearer is a second pool of the node pool, whose machines cost three times as much.
func dearer() *fleet.Policy {
	q := policy()
	q.Name, q.NodePool, q.Types = "q", "p", []fleet.InstanceType{{
		Name:     "d.1",
		Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096, DiskMB: 20_000}, Price: 0.3,
	}}
	return q
}

// bought counts the machines of a pool.
func bought(t *testing.T, p *pool.Pool, name string) (n int) {
	t.Helper()
	require.NoError(t, p.Do(t.Context(), func(_ time.Time, c *pool.Core) error {
		n = len(c.Instances(name))
		return nil
	}))
	return n
}

func TestPoolsOfANodePoolShareItsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{Offerings: dearer().Offerings()})
		w.policies = []*fleet.Policy{dearer(), policy()}
		w.policies[1].Max = 4
		w.sharing = pool.NewSharing(func() { w.change(func() {}) })
		w.sharing.Set(w.policies)
		p, stop := w.run(t)
		defer stop()
		w.change(func() { w.demand = work(3) })
		time.Sleep(5 * time.Second)
		require.Equal(t, []int{3, 0}, []int{bought(t, p, "p"), bought(t, p, "q")}, "once, where it costs less")
		w.change(func() { w.demand = work(9) })
		time.Sleep(time.Second)
		require.Equal(t, []int{4, 5}, []int{bought(t, p, "p"), bought(t, p, "q")}, "the rest where there is room")
		out, err := p.Plan(t.Context(), "q")
		require.NoError(t, err)
		require.Empty(t, out.Actions)
		require.Equal(t, 5, out.Waiting[0].Placed)
	})
}

// Two providers: what the cheap one has no capacity for, or can't be asked for, the other one sells.
func TestWorkGoesToAnotherProviderInTheSameBreath(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]sim.Config{
		"no capacity": {SoldOut: map[string]bool{"sim/c.1/a/on-demand": true}},
		"no answer":   {Errors: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cheap, dear := newWorld(cfg), newWorld(sim.Config{Offerings: dearer().Offerings()})
				demand := func(n int) {
					for _, w := range []*world{cheap, dear} {
						w.change(func() { w.demand = work(n) })
					}
				}
				sharing := pool.NewSharing(func() {
					cheap.change(func() {})
					dear.change(func() {})
				})
				cheap.policies, dear.policies = []*fleet.Policy{policy()}, []*fleet.Policy{dearer()}
				cheap.policies[0].NodePool, cheap.sharing, dear.sharing = "p", sharing, sharing
				sharing.Set([]*fleet.Policy{cheap.policies[0], dear.policies[0]})
				a, stopA := cheap.run(t)
				b, stopB := dear.run(t)
				defer stopB()
				defer stopA()
				time.Sleep(10 * time.Second)
				demand(6)
				time.Sleep(20 * time.Second)
				require.Equal(t, 6, bought(t, b, "q"))
				require.Zero(t, cheap.running())
				require.LessOrEqual(t, bought(t, a, "p"), 0)
			})
		})
	}
}

// Two pools that both have room for all of the work do not leave it to each other when the machines of both fail.
func TestSharersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{BootFails: 1, Offerings: dearer().Offerings()})
		w.policies = []*fleet.Policy{dearer(), policy()}
		w.policies[1].Max = 5
		w.sharing = pool.NewSharing(func() { w.change(func() {}) })
		w.sharing.Set(w.policies)
		_, stop := w.run(t)
		defer stop()
		time.Sleep(time.Minute)
		w.change(func() { w.demand = work(10) }) // five each
		time.Sleep(time.Second)
		require.Equal(t, 10, w.running())
		w.change(func() { w.demand = work(5) }) // and either has room for it
		time.Sleep(20 * time.Minute)            // none of them boots
		w.cloud.With(func(_ time.Time, c *sim.Cloud) {
			require.Greater(t, c.Calls[provider.CallCreate], 2, "it is tried again")
		})
	})
}
