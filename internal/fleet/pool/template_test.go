package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// TestAnUpgradeReplacesNothing: machines that an earlier release made from the same image and user data count as made
// from today's template, in which there is more.
func TestAnUpgradeReplacesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{Latency: 100 * time.Millisecond})
		_, stop := w.run(t)
		time.Sleep(10 * time.Second)
		w.change(func() { w.demand, w.work = work(3), 1 })
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, 3, w.running())
		w.mu.Lock()
		for id, in := range w.intents {
			in.Template = policy().FormerTemplate()
			w.intents[id] = in
		}
		w.mu.Unlock()
		p, stop := w.run(t)
		defer stop()
		time.Sleep(time.Hour)
		for _, i := range instances(t, p) {
			require.Equal(t, policy().Template(), i.Template)
		}
		require.Len(t, instances(t, p), 3)

		changed := policy()
		changed.RunProbe = "true"
		require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error {
			c.SetPolicies(now, append(c.Policies()[:0:0], changed))
			require.Equal(t, changed.Template(), c.Template("p"))
			return nil
		}))
		w.change(func() { w.work = 0 })
		for _, i := range instances(t, p) {
			require.NotEqual(t, changed.Template(), i.Template, "drift")
		}
	})
}
