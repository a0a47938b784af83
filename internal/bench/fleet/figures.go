package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/simulator"
	"github.com/drover-project/drover/internal/id"
)

// Tell takes a figure of the fleet.
type Tell = func(name string, value float64, unit, goal string)

// Figures measures the fleet on simulated clouds: decisions, adoption, the simulator itself, and what comes of days and
// of faults. now is the wall's clock; quick takes a tenth of the time. Errors: a breach of an invariant; ctx's.
func Figures(ctx context.Context, quick bool, now func() time.Time, tell Tell) error {
	for _, part := range []func(context.Context, bool, func() time.Time, Tell) error{
		figurePlan, figureAdoption, figureLatency, figureCreates, figureCosts, figureObjective, figureFaults, figureDay,
	} {
		if err := part(ctx, quick, now, tell); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// figureCosts runs days of work; all of it is deterministic.
func figureCosts(ctx context.Context, quick bool, _ func() time.Time, tell Tell) error {
	length, seeds := 24*time.Hour, uint64(20)
	if quick {
		length, seeds = 6*time.Hour, 2
	}
	// The goal holds for the worst day, so that a good mean cannot hide a bad one.
	worst, again, bought := 0.0, 0, 0
	for seed := uint64(1); seed <= seeds && ctx.Err() == nil; seed++ {
		res, err := simulator.Run(simulator.Config{
			Seed: seed, Policy: simulator.StandardPolicy(), Cloud: simulator.StandardCloud(),
			Work: simulator.Daily(seed, 24*time.Hour, simulator.Mixed(10*time.Minute), 2000),
		})
		if err != nil {
			return fmt.Errorf("daily load: %w", err)
		}
		worst, again, bought = max(worst, res.Ratio()), again+res.Again, bought+res.Created
	}
	tell(fmt.Sprintf("fleet: cost of the daily load, 2,000 tasks an hour, worst of %d seeds", seeds), worst, "x clairvoyant bound", "≤ 1.2")
	tell("fleet: equal re-creates in 10 min, daily load, 2,000 tasks an hour", 100*float64(again)/float64(max(bought, 1)), "%", "")
	bursty := simulator.Bursty(1, length, simulator.Mixed(10*time.Minute), 4000)
	for _, load := range []struct {
		name, cost string
		work       simulator.Workload
	}{
		{"daily load, 20,000 tasks an hour", "≤ 1.2", simulator.Daily(1, length, simulator.Mixed(10*time.Minute), 20000)},
		{"bursty load", "≤ 1.35", bursty},
		{"heavy-tailed load", "", simulator.Poisson(1, length, simulator.Mix{
			Run: 10 * time.Minute, Heavy: 1.5,
			Sizes: simulator.Mixed(0).Sizes,
		}, 1000)},
		{"burst of 30,000 tasks", "", simulator.Burst(1, 30000, time.Minute, simulator.Mixed(10*time.Minute))},
	} {
		res, err := simulator.Run(simulator.Config{
			Seed: 1, Policy: simulator.StandardPolicy(), Cloud: simulator.StandardCloud(),
			Work: load.work,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", load.name, err)
		}
		tell("fleet: cost of the "+load.name, res.Ratio(), "x clairvoyant bound", load.cost)
		tell("fleet: equal re-creates in 10 min, "+load.name, 100*float64(res.Again)/float64(max(res.Created, 1)), "%", "")
		tell("fleet: wait of the "+load.name+", p95", res.Wait(0.95).Seconds(), "s", "")
	}
	small := simulator.StandardPolicy().Types[0].Capacity
	tell("fleet: bursty load, what a clairvoyant without re-creates pays at least", bursty.Calm(small, 30*time.Second),
		"x clairvoyant bound", "")
	return nil
}

// figureObjective is what the rules are judged by: money and waiting together, relative to the best of the peers, which are
// other products' rules and ours with a minute of idling.
func figureObjective(ctx context.Context, quick bool, _ func() time.Time, tell Tell) error {
	length, loads := 24*time.Hour, simulator.Loads()
	if quick {
		length, loads = 6*time.Hour, loads[4:5]
	}
	for n := range loads {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c, err := loads[n].Compare(1, 1, length)
		if err != nil {
			return fmt.Errorf("%s: %w", loads[n].Name, err)
		}
		for k, w := range simulator.WaitCosts {
			tell(fmt.Sprintf("fleet: money and waiting at %g an hour, %s", w, loads[n].Name),
				c.Ours[k].Total/c.Best(k), "x the best peer's", "≤ 1")
		}
	}
	return nil
}

// figureDay is a day of a million tasks on up to twelve thousand machines, twice for the hash; it decides every five
// seconds at most.
func figureDay(_ context.Context, quick bool, now func() time.Time, tell Tell) error {
	length, runs := 24*time.Hour, 2
	if quick {
		length, runs = 3*time.Hour, 2
	}
	cloud := simulator.StandardCloud()
	cloud.Caps.Rates[provider.CallCreate] = provider.Rate{PerSecond: 100, Burst: 2000}
	work := simulator.Daily(1, length, simulator.Mixed(17*time.Minute), 75_760)
	// Equal seeds must give one hash: a second one means that the simulation is not deterministic.
	hashes := map[string]bool{}
	var took time.Duration
	var res simulator.Result
	for range runs {
		began := now()
		var err error
		if res, err = simulator.Run(simulator.Config{
			Seed: 1, Policy: simulator.StandardPolicy(), Cloud: cloud, Work: work,
			Coalesce: 5 * time.Second, Burst: 5 * time.Second,
		}); err != nil {
			return err
		}
		took = now().Sub(began)
		hashes[res.Hash] = true
	}
	tell("fleet: simulated day, wall time", took.Seconds(), "s", "< 60")
	tell("fleet: simulated day, tasks", float64(res.Tasks), "", "1 M")
	tell("fleet: simulated day, most machines at once", float64(res.Peak), "", "10,000")
	tell("fleet: simulated day, different hashes of equal seeds", float64(len(hashes)), "", "1")
	tell("fleet: simulated day, cost", res.Ratio(), "x clairvoyant bound", "≤ 1.2")
	tell("fleet: simulated day, equal re-creates in 10 min", 100*float64(res.Again)/float64(max(res.Created, 1)), "%", "")
	return nil
}

// figureFaults runs fault seeds; the first breach of an invariant ends it.
func figureFaults(ctx context.Context, quick bool, now func() time.Time, tell Tell) error {
	seeds := 1000
	if quick {
		seeds = 100
	}
	began := now()
	for seed := range seeds {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := simulator.Run(simulator.Faulty(uint64(seed))); err != nil {
			return err
		}
	}
	tell("fleet: fault seeds with no lost or doubled work and no leaked machine", float64(seeds), "", "1000")
	tell("fleet: fault seeds, wall time each", now().Sub(began).Seconds()/float64(seeds)*1000, "ms", "")
	return nil
}

// figureCreates is how long after a burst 64 machines were asked for, on a cloud that allows it.
func figureCreates(_ context.Context, _ bool, _ func() time.Time, tell Tell) error {
	p := simulator.StandardPolicy()
	p.Types = p.Types[:1]
	for _, batch := range []int{1, 50} {
		cloud := simulator.StandardCloud()
		cloud.Caps.Batch = batch
		work := simulator.Workload{}
		for range 64 {
			work = append(work, simulator.Task{At: time.Minute, Run: time.Minute, Each: p.Types[0].Capacity, Priority: 50})
		}
		res, err := simulator.Run(simulator.Config{Seed: 1, Policy: p, Cloud: cloud, Work: work})
		if err != nil {
			return err
		}
		tell(fmt.Sprintf("fleet: 64 creates issued after a burst, %d a call", batch), (res.CreatedAt(64) - time.Minute).Seconds(), "s", "< 1")
	}
	return nil
}

// percentile of durations in ms; the list is sorted.
func percentile(list []time.Duration, q float64) float64 {
	slices.Sort(list)
	return float64(list[min(len(list)-1, int(q*float64(len(list))))]) / 1e6
}

// fleetOf returns a core that runs n busy machines in a cloud, and the cloud's list.
func fleetOf(at time.Time, p *fleet.Policy, n int) (*pool.Core, []provider.Machine, []fleet.Durable) {
	cfg := pool.Config{
		Owner: "sim", Provider: p.Provider, Policies: []*fleet.Policy{p}, Seed: 1, IDs: id.NewSeeded(1),
		Caps: provider.Capabilities{Idempotent: true, Batch: 1000, Visible: 10 * time.Second},
	}
	offerings := p.Offerings()
	machines := make([]provider.Machine, n)
	intents := make([]fleet.Durable, n)
	for k := range machines {
		o := &offerings[k%len(offerings)]
		name := fmt.Sprintf("intent-%05d", k)
		machines[k] = provider.Machine{
			ID: fmt.Sprintf("i-%05d", k), Intent: name, Type: o.Type, Zone: o.Zone, Market: o.Market, State: provider.Running,
			CreatedAt: at.Add(-time.Hour),
			Tags: map[string]string{
				fleet.TagOwner: "sim", fleet.TagPool: p.Name, fleet.TagOffering: o.Key, fleet.TagTemplate: p.Template(), fleet.TagIntent: name,
			},
		}
		intents[k] = fleet.Durable{
			ID: name, Pool: p.Name, Offering: o.Key, Template: p.Template(), PlannedAt: at.Add(-time.Hour), ProviderID: "cloud-" + name,
			NodeID: fmt.Sprintf("node-%05d", k),
		}
	}
	return pool.NewCore(at, cfg), machines, intents
}
