package sim_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/providertest"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

func offering(typ string) fleet.Offering {
	return fleet.Offering{
		Key: fleet.OfferingKey("sim", typ, "a", fleet.MarketOnDemand), Provider: "sim", Type: typ, Zone: "a", Market: fleet.MarketOnDemand,
		Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096}, Price: 0.1, QuotaGroup: typ, QuotaUnits: 1,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]provider.Capabilities{
		"idempotent": {Idempotent: true, Batch: 5, Visible: 10 * time.Second},
		"plain":      {Batch: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synced := func(time.Duration) {}
			cfg := sim.Config{Offerings: []fleet.Offering{offering("c")}, Caps: caps, PageSize: 3}
			providertest.Run(t, providertest.Harness{
				New: func(_ *testing.T, owner string) provider.Provider {
					mine := cfg
					mine.Owner = owner
					return sim.New(mine, clock.Wall{})
				},
				Offering: offering("c"), Image: "image", Wait: synced,
				Scarce: func(_ *testing.T, owner string) providertest.Scarce {
					none := cfg
					none.Owner = owner
					none.Offerings = []fleet.Offering{offering("q"), offering("c")}
					none.Quotas = map[string]int64{"q": 0}
					none.SoldOut = map[string]bool{offering("c").Key: true}
					p := sim.New(none, clock.Wall{})
					return providertest.Scarce{Provider: p, Quota: offering("q"), Capacity: offering("c"), Group: "q"}
				},
			})
		})
	}
}

// What is billed is what ran; minimum and granularity count.
func TestBilling(t *testing.T) {
	t.Parallel()
	o := offering("c")
	o.Billing = fleet.Billing{Granularity: time.Hour}
	c := sim.NewCloud(sim.Config{Owner: "me", Offerings: []fleet.Offering{o}})
	now := time.Unix(0, 0)
	made, _, err := c.Create(now, &provider.Request{Offering: o, Intents: []provider.Intent{{ID: "a"}}})
	require.NoError(t, err)
	require.InDelta(t, 0.1, c.Cost(now.Add(time.Minute)), 1e-9)
	_, err = c.Destroy(now.Add(61*time.Minute), made[0].ID)
	require.NoError(t, err)
	require.InDelta(t, 0.2, c.Cost(now.Add(5*time.Hour)), 1e-9)
}

// A call may be done although its answer is lost; another one with the same intent finds it.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := sim.New(sim.Config{
			Owner: "me", Offerings: []fleet.Offering{offering("c")}, Lost: 1, Latency: time.Second,
			Caps: provider.Capabilities{Idempotent: true},
		}, clock.Wall{})
		req := provider.Request{Offering: offering("c"), Intents: []provider.Intent{{ID: "a"}}, Tags: map[string]string{fleet.TagOwner: "me"}}
		for range 3 {
			_, err := p.Create(t.Context(), req)
			require.Equal(t, provider.Ambiguous, provider.KindOf(err))
		}
		list, _, err := p.List(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}
