package whatif

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/docker"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/loopback"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
	"github.com/drover-project/drover/internal/fleet/simulator"
)

// points is how many moments are told of the time in which work arrives. The simulator bounds those of all the time.
const points = 240

// Simulate runs the policy against the workload on virtual time: ours first, then those to compare with.
// Errors: Invalid, Internal for a breach of an invariant.
func Simulate(ctx context.Context, ask fleet.Simulation) ([]fleet.Simulated, error) {
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
	cloud, told, err := simulatedCloud(&ask)
	if err != nil {
		return nil, err
	}
	base := simulator.Config{
		Seed: cmp.Or(ask.Seed, 1), Policy: bounded(&ask), Work: work, Sample: max(length/points, time.Second), Linger: 3 * time.Hour,
		Cloud: cloud, Stopped: func() error { return context.Cause(ctx) },
	}
	rules := []simulator.Rules{{Name: "drover", Idle: ask.Policy.Idle}}
	if ask.Compare {
		rules = append(rules, simulator.Peers()...)
	}
	var list []fleet.Simulated
	for k := range rules {
		if ctx.Err() != nil {
			break
		}
		res, err := simulator.Run(rules[k].On(base))
		if ctx.Err() != nil {
			return list, context.Cause(ctx)
		}
		if drover.CodeOf(err) == drover.Invalid {
			return list, err
		}
		if err != nil {
			return list, drover.Errorf(drover.Internal, "simulating: %w", err)
		}
		list = append(list, simulated(rules[k].Name, told, ask.Policy.WaitCost, &res))
	}
	return list, context.Cause(ctx)
}

// bounded is the policy with the provider's own bounds laid on it.
func bounded(ask *fleet.Simulation) *fleet.Policy {
	p := *ask.Policy
	least := func(to *int64, bound int64) {
		if bound > 0 && (*to == 0 || *to > bound) {
			*to = bound
		}
	}
	most := int64(p.Max)
	least(&most, int64(ask.Max))
	p.Max = int(most)
	least(&p.Limits.CPU, ask.Room.CPU)
	least(&p.Limits.MemoryMB, ask.Room.MemoryMB)
	return &p
}

// simulatedCloud behaves as the pool's provider does, with its limits of calls and its usual time to boot; told says so.
func simulatedCloud(ask *fleet.Simulation) (cfg sim.Config, told string, err error) {
	kind := ask.Provider
	if kind == "" {
		if kind = ask.Policy.Provider; kind != provider.KindLoopback && kind != provider.KindDocker {
			kind = provider.KindEC2
		}
	}
	var caps provider.Capabilities
	boot, latency := 45*time.Second, 300*time.Millisecond
	switch kind {
	case provider.KindLoopback:
		caps, boot, latency = new(loopback.Provider).Capabilities(), time.Second, 20*time.Millisecond
	case provider.KindDocker:
		caps, boot, latency = new(docker.Provider).Capabilities(), 2*time.Second, 200*time.Millisecond
	case provider.KindEC2:
		caps = new(ec2.Provider).Capabilities()
	default:
		return cfg, "", drover.Errorf(drover.Invalid, "provider: must be loopback, docker or ec2, got %q", kind)
	}
	if caps.Shared && !bootstrap.Shareable(ask.Policy) {
		caps.Batch = 1
	}
	boot = cmp.Or(ask.Boot, boot)
	told = fmt.Sprintf("Cloud as %s: machines are made %d a call at most", kind, max(caps.Batch, 1))
	if r, limited := caps.Rates[provider.CallCreate]; limited {
		told += fmt.Sprintf(", %g at once and %g a second", r.Burst, r.PerSecond)
	}
	if r := caps.Creates; r.PerSecond > 0 {
		told += fmt.Sprintf(", in %g calls at once and %g a second", r.Burst, r.PerSecond)
	}
	told += fmt.Sprintf("; they boot in about %s", boot)
	return sim.Config{
		Latency: latency, Boot: boot, BootFails: ask.Faults, Errors: ask.Faults, Lost: ask.Faults / 2, Stragglers: 0.01, Interrupts: true,
		Caps: caps,
	}, told, nil
}

// simulated is a simulation's result as the API shows it.
func simulated(rules, cloud string, waitCost float64, r *simulator.Result) fleet.Simulated {
	out := fleet.Simulated{
		Rules: rules, Tasks: r.Tasks, Cost: r.Cost, Bound: r.Bound, Machines: r.Created, Peak: r.Peak, Again: r.Again, Redone: r.Redone,
		Hours: r.Hours, WaitP50: r.Wait(0.5), WaitP95: r.Wait(0.95), WaitP99: r.Wait(0.99), Until: r.Until, Hash: r.Hash, Points: r.Points,
		WaitMean: r.MeanWait(), Waiting: r.WaitingCost(waitCost), Total: r.Total(waitCost), Cloud: cloud,
	}
	for _, what := range slices.Sorted(maps.Keys(r.Stopped)) {
		out.Stopped = append(out.Stopped, fleet.SimulatedStop{What: what, Waited: r.Stopped[what]})
	}
	return out
}

// workload is the trace that was sent, or a drawn one: by default a day of 600 tasks an hour of ten minutes each.
// Errors: Invalid for a bad line, an unknown kind, or more work than can be simulated at once.
func workload(ask fleet.Simulation) (simulator.Workload, error) {
	if len(ask.Trace) > 0 {
		return simulator.Trace(bytes.NewReader(ask.Trace))
	}
	seed, length, perHour := cmp.Or(ask.Seed, 1), cmp.Or(ask.Length, 24*time.Hour), cmp.Or(ask.PerHour, 600)
	mix := simulator.Mixed(cmp.Or(ask.Run, 10*time.Minute))
	if length > 31*24*time.Hour || perHour*length.Hours() > 5e6 {
		return nil, drover.Errorf(drover.Invalid, "the workload has about %.0f tasks: at most five million over a month can be simulated",
			perHour*length.Hours())
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
