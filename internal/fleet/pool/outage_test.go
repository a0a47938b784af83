package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// A cloud that hangs, fails or lies for an hour: busy machines live on, nothing is bought twice, and what was wanted
// meanwhile comes afterwards by itself.
func TestAnHourWithoutTheCloud(t *testing.T) {
	t.Parallel()
	for _, mode := range []sim.Mode{sim.ModeHangs, sim.ModeFails, sim.ModeLies} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				from := time.Now().Add(5 * time.Minute)
				w := newWorld(sim.Config{Outages: []sim.Outage{{From: from, Until: from.Add(time.Hour), Mode: mode}}})
				w.work = 1
				p, stop := w.run(t)
				defer stop()
				time.Sleep(time.Minute)
				w.change(func() { w.demand = work(2) })
				time.Sleep(90 * time.Second)
				time.Sleep(5 * time.Minute) // it began
				before := instances(t, p)
				require.Len(t, before, 2)
				w.change(func() { w.demand = work(1) })
				time.Sleep(50 * time.Minute)
				for _, i := range before {
					now := instances(t, p)
					require.Contains(t, ids(now), i.ID, "no busy machine is lost")
				}
				require.LessOrEqual(t, w.running(), 4, "one more, and a hedge at most")
				time.Sleep(30 * time.Minute)
				time.Sleep(30 * time.Minute)
				left := instances(t, p)
				require.Len(t, left, 3, "what was wanted is there, and no more")
				for _, i := range left {
					require.Equal(t, fleet.InstanceActive, i.State)
				}
				require.Equal(t, 3, w.running(), "nothing is leaked")
			})
		})
	}
}

func ids(list []fleet.Instance) (out []string) {
	for _, i := range list {
		out = append(out, i.ID)
	}
	return out
}
