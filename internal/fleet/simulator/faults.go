package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// Faulty draws a cloud, agents and a policy that go wrong in their own way.
func Faulty(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 9))
	maybe := func(p, v float64) float64 {
		if rng.Float64() < p {
			return v * rng.Float64()
		}
		return 0
	}
	c := StandardCloud()
	c.Stragglers, c.BootFails, c.Dies = maybe(0.5, 0.05), maybe(0.5, 0.2), maybe(0.3, 0.2)
	c.Errors, c.Lost, c.Hangs, c.Partial, c.Omits = maybe(0.6, 0.1), maybe(0.6, 0.1), maybe(0.3, 0.02), maybe(0.5, 0.2), maybe(0.3, 0.05)
	c.Stale = time.Duration(maybe(0.5, float64(10*time.Second)))
	c.Zombies, c.Hidden = maybe(0.3, 0.3), maybe(0.3, 0.1)
	c.PageSize = 10 + rng.IntN(100)
	c.Interrupts = true
	if rng.IntN(2) == 0 {
		c.CapacityOn, c.CapacityOff = 20*time.Minute, 5*time.Minute
	}
	if rng.IntN(2) == 0 {
		c.Quotas = map[string]int64{"c": int64(5 + rng.IntN(30)), "c-spot": int64(5 + rng.IntN(30))}
	}
	c.Caps.Idempotent = rng.IntN(3) > 0
	c.Caps.Batch = 1 + rng.IntN(20)
	p := StandardPolicy()
	p.Spot = []string{fleet.SpotNever, fleet.SpotPrefer, fleet.SpotOnly}[rng.IntN(3)]
	p.Max = []int{0, 0, 40}[rng.IntN(3)]
	p.Min = []int{0, 0, 2}[rng.IntN(3)]
	p.Expire = []time.Duration{0, 0, 40 * time.Minute}[rng.IntN(3)]
	p.Budget.PerHour = []float64{0, 0, 8}[rng.IntN(3)]
	mix := Mixed(time.Duration(1+rng.IntN(10)) * time.Minute)
	var work Workload
	switch rng.IntN(3) {
	case 0:
		work = Poisson(seed, 2*time.Hour, mix, 300)
	case 1:
		work = Bursty(seed, 2*time.Hour, mix, 1200)
	default:
		work = Join(Burst(seed, 300, time.Minute, mix), Burst(seed+1, 100, time.Hour, mix))
	}
	c.Outages = outages(rng)
	cfg := Config{
		Seed: seed, Policy: p, Cloud: c, Work: work, Flaps: maybe(0.3, 1), Halves: maybe(0.3, 1), Ghosts: maybe(0.3, 1), Check: 1,
		Linger: 4 * time.Hour,
	}
	for range rng.IntN(3) {
		cfg.Restarts = append(cfg.Restarts, time.Duration(rng.Int64N(int64(2*time.Hour))))
	}
	if cfg.Cloud.Caps.Idempotent && rng.IntN(2) == 0 { // as EC2: a create is of a batch, whole or not at all asked for again
		cfg.Cloud.Caps.Shared, cfg.Cloud.Caps.Creates = true, provider.Rate{PerSecond: 2, Burst: 5}
	}
	return cfg
}

// outages lets the whole cloud fail, hang or lie for up to an hour, in a third of all seeds.
func outages(rng *rand.Rand) []sim.Outage {
	if rng.IntN(3) > 0 {
		return nil
	}
	from := start.Add(time.Duration(rng.Int64N(int64(90 * time.Minute))))
	mode := []sim.Mode{sim.ModeFails, sim.ModeHangs, sim.ModeLies}[rng.IntN(3)]
	return []sim.Outage{{From: from, Until: from.Add(time.Duration(1 + rng.Int64N(int64(time.Hour)))), Mode: mode}}
}
