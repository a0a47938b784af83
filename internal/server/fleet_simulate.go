package server

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"drover"
	"drover/internal/fleet/provider"
	"drover/internal/fleet/provider/sim"
	"drover/internal/fleet/simulator"
)

// points is how many moments of a simulation are told.
const points = 240

// Simulate runs the policy against the workload on virtual time: ours first, then those to compare with.
// Errors: Invalid, Internal for a breach of an invariant.
func Simulate(ctx context.Context, ask drover.FleetSimulation) ([]drover.FleetSimulated, error) {
	if err := ask.Policy.Validate(); err != nil {
		return nil, err
	}
	work, err := workload(ask)
	if err != nil {
		return nil, err
	}
	if len(work) == 0 {
		return nil, drover.Errorf(drover.Invalid, "the workload is empty")
	}
	length := max(work[len(work)-1].At, time.Minute)
	cfg := simulator.Config{
		Seed: cmp.Or(ask.Seed, 1), Policy: ask.Policy, Work: work, Sample: max(length/points, time.Second), Linger: 3 * time.Hour,
		Cloud: sim.Config{
			Latency: 300 * time.Millisecond, Boot: cmp.Or(ask.Boot, 45*time.Second), BootFails: ask.Faults, Errors: ask.Faults, Lost: ask.Faults / 2,
			Stragglers: 0.01, Interrupts: true, Caps: provider.Capabilities{
				Idempotent: true, Batch: 50, Visible: 10 * time.Second, Interrupts: true,
				Rates: map[provider.Call]provider.Rate{
					provider.CallCreate: {PerSecond: 2, Burst: 1000}, provider.CallDestroy: {PerSecond: 20, Burst: 1000},
					provider.CallList: {PerSecond: 20, Burst: 100}, provider.CallTag: {PerSecond: 20, Burst: 100},
				},
			},
		},
	}
	var list []drover.FleetSimulated
	for _, rules := range []struct {
		name string
		base *simulator.Baseline
	}{
		{"drover", nil},
		{"arvados", simulator.Arvados()},
		{"cluster-autoscaler", simulator.ClusterAutoscaler()},
	} {
		if rules.base != nil && !ask.Compare || ctx.Err() != nil {
			break
		}
		run := cfg
		if rules.base != nil {
			run.Decide = rules.base.Decide
		}
		res, err := simulator.Run(run)
		if err != nil {
			return list, drover.Errorf(drover.Internal, "simulating: %w", err)
		}
		list = append(list, simulated(rules.name, &res))
	}
	return list, context.Cause(ctx)
}

func simulated(rules string, r *simulator.Result) drover.FleetSimulated {
	return drover.FleetSimulated{
		Rules: rules, Tasks: r.Tasks, Cost: r.Cost, Bound: r.Bound, Machines: r.Created, Peak: r.Peak, Again: r.Again, Redone: r.Redone,
		Hours: r.Hours, WaitP50: r.Wait(0.5), WaitP95: r.Wait(0.95), WaitP99: r.Wait(0.99), Until: r.Until, Hash: r.Hash, Points: r.Points,
	}
}

func workload(ask drover.FleetSimulation) (simulator.Workload, error) {
	if len(ask.Trace) > 0 {
		return simulator.Trace(bytes.NewReader(ask.Trace))
	}
	seed, length, perHour := cmp.Or(ask.Seed, 1), cmp.Or(ask.Length, 24*time.Hour), cmp.Or(ask.PerHour, 600)
	mix := simulator.Mixed(cmp.Or(ask.Run, 10*time.Minute))
	if length > 31*24*time.Hour || perHour*length.Hours() > 5e6 {
		return nil, drover.Errorf(drover.Invalid, "the workload has about %.0f tasks: at most five million over a month can be simulated", perHour*length.Hours())
	}
	switch ask.Workload {
	case "poisson":
		return simulator.Poisson(seed, length, mix, perHour), nil
	case "bursty":
		return simulator.Bursty(seed, length, mix, perHour), nil
	case "daily", "":
		return simulator.Daily(seed, length, mix, perHour), nil
	case "heavy":
		mix.Heavy = 1.5
		return simulator.Poisson(seed, length, mix, perHour), nil
	case "burst":
		return simulator.Burst(seed, int(perHour), time.Minute, mix), nil
	}
	return nil, drover.Errorf(drover.Invalid, "workload: must be poisson, bursty, daily, heavy or burst, got %q", ask.Workload)
}
