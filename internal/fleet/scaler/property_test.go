package scaler

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// situation draws a pool, its machines and its work.
func situation(t *rapid.T) Input {
	p := policy()
	p.Spot = rapid.SampledFrom([]string{fleet.SpotNever, fleet.SpotPrefer, fleet.SpotOnly}).Draw(t, "spot")
	p.Max = rapid.SampledFrom([]int{0, 0, 3, 12}).Draw(t, "max")
	p.Min = rapid.IntRange(0, 3).Draw(t, "min")
	p.Budget.PerHour = rapid.SampledFrom([]float64{0, 0, 1, 2.5}).Draw(t, "budget")
	p.Expire = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "expire")
	p.Consolidate = rapid.Bool().Draw(t, "consolidate")
	in := input(p)
	in.Listed, in.Settled = rapid.Bool().Draw(t, "listed"), rapid.Bool().Draw(t, "settled")
	for n := range rapid.IntRange(0, 5).Draw(t, "classes") {
		in.Demand = append(in.Demand, fleet.DemandClass{
			Name: fmt.Sprint("w", n), Priority: rapid.SampledFrom([]int{10, 50, 90}).Draw(t, "priority"),
			Count: rapid.IntRange(1, 60).Draw(t, "count"),
			Each: drover.Capacity{
				CPU:      int64(rapid.IntRange(0, 40).Draw(t, "cpu")) * 500,
				MemoryMB: int64(rapid.IntRange(0, 40).Draw(t, "memory")) * 512,
			},
			Since: start.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "since")) * time.Second),
		})
	}
	for n := range rapid.IntRange(0, 12).Draw(t, "machines") {
		in.Instances = append(in.Instances, drawMachine(t, fmt.Sprint("m", n)))
	}
	return in
}

func drawMachine(t *rapid.T, id string) *fleet.Instance {
	i := machine(policy(), id, rapid.SampledFrom([]string{"c5.large", "c5.xlarge", "c5.4xlarge"}).Draw(t, "type"),
		rapid.SampledFrom([]fleet.InstanceState{
			fleet.InstanceCreating, fleet.InstanceBooting, fleet.InstanceRegistered, fleet.InstanceActive, fleet.InstanceActive,
			fleet.InstanceDraining, fleet.InstanceDestroying, fleet.InstanceOrphaned,
		}).Draw(t, "state"))
	i.Behavior = rapid.SampledFrom([]fleet.IdleBehavior{
		fleet.BehaviorRun, fleet.BehaviorRun, fleet.BehaviorHold,
		fleet.BehaviorDrain,
	}).Draw(t, "behavior")
	ago := func(name string) time.Time {
		return start.Add(-time.Duration(rapid.IntRange(0, 7200).Draw(t, name)) * time.Second)
	}
	if i.State == fleet.InstanceActive || i.State == fleet.InstanceDraining {
		if i.Work = rapid.IntRange(0, 2).Draw(t, "work"); i.Work > 0 {
			i.IdleAt, i.Used = time.Time{}, drover.Capacity{CPU: 500 * int64(i.Work), MemoryMB: 512}
			i.Movable = rapid.Bool().Draw(t, "movable")
		} else {
			i.IdleAt = ago("idle")
		}
		i.Quiet = i.State == fleet.InstanceDraining && i.Work == 0 && rapid.Bool().Draw(t, "quiet")
	}
	if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
		i.LostAt = ago("silence")
	}
	if rapid.IntRange(0, 9).Draw(t, "taken") == 0 {
		i.InterruptAt = start.Add(time.Minute)
	}
	i.StateAt = ago("state since")
	return i
}

func TestDecideKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := situation(t)
		before := make([]fleet.Instance, len(in.Instances))
		byID := map[string]*fleet.Instance{}
		for n, i := range in.Instances {
			before[n], byID[i.ID] = *i, i
		}
		out := Decide(in)
		require.Empty(t, cmp.Diff(out, Decide(in)), "equal inputs, equal decisions")
		for n, i := range in.Instances {
			require.Empty(t, cmp.Diff(before[n], *i), "nothing of the input changes")
		}
		machines, cost, drained := len(in.Instances), 0.0, 0
		for _, i := range in.Instances {
			cost += i.Price
		}
		seen := map[string]bool{}
		for _, a := range out.Actions {
			require.NotEmpty(t, a.Why)
			require.NotEmpty(t, a.Reason)
			if a.Kind == fleet.ActionCreate {
				require.True(t, in.Listed, "nothing is bought before the cloud was seen")
				machines += a.Count
				cost += float64(a.Count) * a.Buys.Price
				continue
			}
			require.True(t, in.Settled, "nothing is returned before the whole picture was seen")
			require.False(t, seen[a.Instance], "one action a machine")
			seen[a.Instance] = true
			i := byID[a.Instance]
			if a.Kind == fleet.ActionDestroy {
				require.Zero(t, i.Work, "no busy machine is destroyed")
				require.NotEqual(t, fleet.BehaviorHold, i.Behavior, "no held machine is destroyed")
			}
			if a.Kind == fleet.ActionDrain && a.Why == WhyIdle {
				drained++
			}
		}
		if in.Policy.Max > 0 {
			require.LessOrEqual(t, machines, max(in.Policy.Max, len(in.Instances)))
		}
		if b := in.Policy.Budget.PerHour; b > 0 && machines > len(in.Instances) {
			require.LessOrEqual(t, cost, b+1e-9)
		}
		live := 0
		for _, i := range in.Instances {
			if i.State.Starting() || i.State == fleet.InstanceActive {
				live++
			}
		}
		require.True(t, drained == 0 || live-drained >= in.Policy.Min, "the minimum stays")
		for _, w := range out.Waiting {
			require.LessOrEqual(t, w.Placed+w.Bought, w.Count)
			require.NotEmpty(t, w.Reason)
		}
	})
}

// More machines than the work needs are never bought: all of it would fit with one machine of any kind less.
func TestDecideBuysNothingTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := input(policy(), work("w", rapid.IntRange(1, 4).Draw(t, "cores"), rapid.IntRange(1, 50).Draw(t, "n")))
		out := Decide(in)
		for _, a := range out.Actions {
			for range a.Count {
				i := machine(in.Policy, fmt.Sprint("m", len(in.Instances)), a.Buys.Type, fleet.InstanceCreating)
				i.PlannedAt = start
				in.Instances = append(in.Instances, i)
			}
		}
		require.Zero(t, out.Deferred)
		require.Empty(t, Decide(in).Actions, "what was bought is counted")
	})
}
