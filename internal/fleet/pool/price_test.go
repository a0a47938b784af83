package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// A price that changes counts for what is bought next, for the ledger from then on, and after a restart.
func TestPricesChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spot := policy()
		spot.Spot, spot.Types[0].SpotPrice, spot.MaxPrice, spot.Idle = fleet.SpotOnly, 0.06, 0.05, 24*time.Hour
		w := newWorld(sim.Config{
			Offerings: spot.OfferingsAt(map[string]float64{"sim/c.1/a/spot": 0.04}),
			Caps:      provider.Capabilities{Reprices: true},
		})
		w.policies = []*fleet.Policy{spot}
		p, stop := w.run(t)
		set := func(price float64) (changed int) {
			require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error {
				changed = c.SetPrices(now, map[string]float64{"sim/c.1/a/spot": price})
				return nil
			}))
			return changed
		}
		time.Sleep(time.Minute)
		w.change(func() { w.demand = work(1) })
		time.Sleep(time.Minute)
		require.Zero(t, w.running(), "it is above the highest price")
		require.Equal(t, 1, set(0.04))
		require.Zero(t, set(0.04))
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, w.running())
		i := instances(t, p)[0]
		require.InDelta(t, 0.04, i.Price, 1e-9)
		time.Sleep(time.Until(i.CreatedAt.Add(time.Hour)))
		require.Equal(t, 1, set(0.02))
		time.Sleep(time.Hour)
		i = instances(t, p)[0]
		require.InDelta(t, 0.02, i.Price, 1e-9)
		require.InDelta(t, 0.06, i.Charged, 0.001)
		require.InDelta(t, 0.06, w.charged(), 0.001)

		w.mu.Lock()
		w.intents[i.ID] = i.Durable
		w.mu.Unlock()
		stop()
		p, stop = w.run(t)
		defer stop()
		time.Sleep(time.Hour)
		require.InDelta(t, 0.08, instances(t, p)[0].Charged, 0.001)
		require.InDelta(t, 0.08, w.charged(), 0.001)
	})
}
