package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/learned"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
	"github.com/drover-project/drover/internal/fleet/simulator"
)

// start is when virtual time begins.
var start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) // a constant

// largeInput is a decision over 10,000 machines, 10,000 pieces of work in 200 classes, and 800 offerings.
func largeInput() scaler.Input {
	p := &fleet.Policy{Name: "p", Provider: "sim", Zones: []string{"a", "b", "c", "d"}, Spot: fleet.SpotPrefer}
	for n := range 100 {
		cores, ratio := int64(2<<(n%6)), int64(2+2*(n/6%4))
		price := float64(cores)*0.03 + float64(cores*ratio)*0.005 + float64(n)*0.0003
		p.Types = append(p.Types, fleet.InstanceType{
			Name: fmt.Sprintf("%c%d.%d", 'a'+n/6, n%6, n), Capacity: drover.Capacity{
				CPU: cores * 1000, MemoryMB: cores * ratio * 1024,
				DiskMB: 100000,
			},
			Price: price, SpotPrice: price / 3,
		})
	}
	p.Canonicalize()
	in := scaler.Input{
		Now: start, Policy: p, Template: p.Template(), Offerings: p.Offerings(), GroupUsed: map[string]int64{}, Listed: true, Settled: true,
		Beliefs: learned.New(1, provider.Capabilities{Batch: 1000, Idempotent: true}),
	}
	for n := range 200 {
		in.Demand = append(in.Demand, fleet.DemandClass{
			Name: fmt.Sprint("class", n), Count: 50, Priority: 50, Since: start.Add(-time.Minute),
			Each: drover.Capacity{CPU: int64(100 + n*37%4000), MemoryMB: int64(128 + n*91%9000), DiskMB: 300},
		})
	}
	for n := range 10_000 {
		o := in.Offerings[n%len(in.Offerings)]
		i := &fleet.Instance{
			Durable: fleet.Durable{
				ID: fmt.Sprint(n), Offering: o.Key, State: fleet.InstanceActive, Behavior: fleet.BehaviorRun, Template: in.Template, Price: o.Price,
				PlannedAt: start.Add(-time.Hour), CreatedAt: start.Add(-time.Hour), ReadyAt: start.Add(-time.Hour),
			},
			Type: o.Type, Capacity: o.Capacity, Work: 1 + n%3,
		}
		i.Used = drover.Capacity{CPU: int64(n*7%int(o.Capacity.CPU)) / 100 * 100, MemoryMB: int64(n*13%int(o.Capacity.MemoryMB)) / 128 * 128}
		in.Instances = append(in.Instances, i)
	}
	return in
}

func figurePlan(_ context.Context, quick bool, now func() time.Time, tell Tell) error {
	in, n := largeInput(), 200
	if quick {
		n = 50
	}
	var took []time.Duration
	for k := range n {
		in.Demand[k%len(in.Demand)].Count++
		began := now()
		if out := scaler.Decide(in); len(out.Actions) == 0 {
			return drover.Errorf(drover.Internal, "nothing was bought")
		}
		took = append(took, now().Sub(began))
	}
	tell("fleet: plan over 10,000 machines, 10,000 tasks, 800 offerings, p99", percentile(took, 0.99), "ms", "< 100")
	return nil
}

// figureAdoption is the work of adopting a fleet, and how long it takes with agents that call within five seconds.
func figureAdoption(_ context.Context, _ bool, now func() time.Time, tell Tell) error {
	const n = 10_000
	core, machines, intents := fleetOf(start, simulator.StandardPolicy(), n)
	began := now()
	core.Restore(start, intents)
	core.Decide(start)
	core.Effects()
	core.Listed(start, machines, true, nil)
	at := start.Add(5 * time.Second)
	for k := range intents {
		if err := core.Registered(at, intents[k].ID, intents[k].NodeID); err != nil {
			return fmt.Errorf("adopting: %w", err)
		}
		core.Reported(at, intents[k].NodeID, pool.Report{Ready: true, Work: 1, Used: drover.Capacity{CPU: 1000}})
	}
	core.Decide(at)
	took := now().Sub(began)
	active := 0
	for _, i := range core.Instances("p") {
		if i.State == fleet.InstanceActive {
			active++
		}
	}
	if active != n || len(core.Effects()) > 0 {
		return drover.Errorf(drover.Internal, "%d of %d machines were adopted", active, n)
	}
	tell("fleet: adoption of 10,000 machines, work of it", took.Seconds(), "s", "")
	p := simulator.StandardPolicy()
	p.Types = p.Types[:1]
	cloud := simulator.StandardCloud()
	cloud.Caps.Rates[provider.CallCreate] = provider.Rate{PerSecond: 1000, Burst: n}
	var work simulator.Workload
	for range n {
		work = append(work, simulator.Task{Run: 30 * time.Minute, Each: p.Types[0].Capacity, Priority: 50})
	}
	res, err := simulator.Run(simulator.Config{Seed: 1, Policy: p, Cloud: cloud, Work: work, Restarts: []time.Duration{15 * time.Minute}})
	if err != nil {
		return err
	}
	tell("fleet: adoption of 10,000 machines, simulated, agents call within 5 s", res.Adopted.Seconds(), "s", "< 10")
	tell("fleet: work lost by that restart", float64(res.Redone), "tasks", "0")
	return nil
}
