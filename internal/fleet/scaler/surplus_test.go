package scaler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// world carries decisions out at once: what is drained is gone, what is bought is there, and urgent work is placed first.
type world struct {
	Input
	seq     int
	bought  int
	drained int
}

func (w *world) step(t require.TestingT) (moved bool) {
	out := Decide(w.Input)
	for _, i := range w.Instances { // what boots is up by the next look
		if i.State == fleet.InstanceBooting {
			i.State, i.ReadyAt, i.IdleAt = fleet.InstanceActive, w.Now, w.Now
		}
	}
	for _, a := range out.Actions {
		moved = true
		if a.Kind == fleet.ActionCreate {
			for range a.Count {
				w.seq++
				i := machine(w.Policy, fmt.Sprint("new", w.seq), a.Buys.Type, fleet.InstanceActive)
				i.ReadyAt, i.IdleAt = w.Now, w.Now
				w.Instances = append(w.Instances, i)
				w.GroupUsed[i.QuotaGroup]++
			}
			w.bought += a.Count
			continue
		}
		for n, i := range w.Instances {
			if i.ID == a.Instance {
				require.Zero(t, i.Work)
				w.Instances = append(w.Instances[:n:n], w.Instances[n+1:]...)
				w.GroupUsed[i.QuotaGroup]--
				w.Beliefs.Destroyed(w.Now, i.QuotaGroup)
				break
			}
		}
		w.drained++
	}
	for _, priority := range []int{90, 50, 10} {
		for k := range w.Demand {
			if w.Demand[k].Priority == priority {
				w.place(&w.Demand[k])
			}
		}
	}
	w.Now = w.Now.Add(time.Second)
	return moved
}

func (w *world) place(d *fleet.DemandClass) {
	for _, i := range w.Instances {
		for ok, _ := d.Each.Fits(i.Free()); d.Count > 0 && ok && i.State == fleet.InstanceActive; ok, _ = d.Each.Fits(i.Free()) {
			i.Work, i.Used, i.IdleAt = i.Work+1, i.Used.Add(d.Each), time.Time{}
			d.Count--
		}
	}
}

// Work that fits an offering never waits while the limit which would stop it has room, or would have it without an idle
// machine that nothing as urgent can use. As soon as nothing changes any more, nothing was bought and returned in turns.
func TestIdleMachinesNeverHoldALimitThatStopsWork(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policy()
		p.Idle = time.Hour // nothing goes by itself
		in := input(p)
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		kind := rapid.SampledFrom([]string{"max", "cpu", "budget", "quota"}).Draw(t, "kind")
		switch kind {
		case "max":
			p.Max = limit
		case "cpu":
			p.Limits.CPU = int64(limit) * 4000
		case "budget":
			p.Budget.PerHour = float64(limit)*0.2 + 0.001
		case "quota":
			in.Beliefs.Created(start.Add(-time.Hour), &in.Offerings[0], p.Template(), 0, int64(limit),
				&provider.Error{Kind: provider.Quota, Group: "c", Limit: int64(limit)})
			p.Types = p.Types[:3] // all of that group
			in.Offerings = p.Offerings()
		}
		room := func() bool {
			n, cpu, cost := 0, int64(0), 0.0
			for _, i := range in.Instances {
				n, cpu, cost = n+1, cpu+i.Capacity.CPU, cost+i.Price
			}
			return (kind != "max" && kind != "quota" || n <= limit) && (kind != "cpu" || cpu <= p.Limits.CPU) &&
				(kind != "budget" || cost <= p.Budget.PerHour)
		}
		for n := range rapid.IntRange(0, 4).Draw(t, "machines") {
			i := machine(p, fmt.Sprint("m", n), rapid.SampledFrom([]string{"c5.large", "c5.xlarge", "c5.4xlarge"}).Draw(t, "type"),
				rapid.SampledFrom([]fleet.InstanceState{fleet.InstanceActive, fleet.InstanceActive, fleet.InstanceBooting}).Draw(t, "state"))
			i.PlannedAt = start.Add(-time.Second)
			i.IdleAt = start.Add(-time.Minute)
			if i.State == fleet.InstanceActive && rapid.Bool().Draw(t, "busy") {
				i.Work, i.Used, i.IdleAt = 1, i.Capacity, time.Time{}
			}
			if in.Instances = append(in.Instances, i); !room() {
				in.Instances = in.Instances[:len(in.Instances)-1]
				continue
			}
			in.GroupUsed[i.QuotaGroup]++
		}
		for n := range rapid.IntRange(1, 3).Draw(t, "classes") {
			d := work(fmt.Sprint("w", n), rapid.SampledFrom([]int{1, 2, 4, 16}).Draw(t, "cores"), rapid.IntRange(1, 3).Draw(t, "count"))
			d.Priority = rapid.SampledFrom([]int{10, 50, 90}).Draw(t, "priority")
			in.Demand = append(in.Demand, d)
		}
		w := &world{Input: in}
		rounds := 0
		for w.step(t) || rounds < 2 {
			rounds++
			in.Instances = w.Instances
			require.True(t, room() || kind == "quota", "the %s is exceeded", kind) // a quota is tried anew at times
			require.Less(t, rounds, 30, "it never rests: %d bought, %d returned", w.bought, w.drained)
		}
		in = w.Input
		for k := range in.Demand {
			d := &in.Demand[k]
			if d.Count == 0 {
				continue
			}
			all := in.Instances
			in.Instances = nil
			for _, i := range all {
				if i.Work > 0 || usableBy(in.Demand, d.Priority, i) {
					in.Instances = append(in.Instances, i)
				}
			}
			for o := range in.Offerings {
				if ok, _ := d.Each.Fits(in.Offerings[o].Capacity); ok {
					in.Instances = append(in.Instances, machine(p, "more", in.Offerings[o].Type, fleet.InstanceActive))
					require.False(t, room(), "%s waits for a %s, and nothing that is needed holds the %s", d.Name, in.Offerings[o].Type, kind)
					in.Instances = in.Instances[:len(in.Instances)-1]
				}
			}
			in.Instances = all
		}
	})
}

// Where the machines that are cheapest for all of the work exceed a limit, smaller ones are bought up to it; then work waits
// for the idle machine that holds the rest. It once waited for all, and that machine stayed.
func TestALimitThatStopsTheCheapestMachineLeavesRoomForSmallerOnes(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Idle, p.Limits.CPU = time.Hour, 12000
	w := &world{Input: input(p, work("w0", 4, 1), work("w1", 4, 3), work("w2", 1, 1))}
	for _, id := range []string{"m0", "m1"} {
		i := machine(p, id, "c5.large", fleet.InstanceBooting)
		i.PlannedAt = start.Add(-time.Second)
		w.Instances = append(w.Instances, i)
	}
	require.Equal(t, map[string]int{"c5.xlarge": 2}, bought(Decide(w.Input)))
	w.step(t)
	require.False(t, w.step(t))
	require.Len(t, w.Instances, 4) // returning m1 would leave 2000 of the limit, for nothing that waits

	w.Policy.Limits.CPU = 14000
	require.Equal(t, "drain m1 surplus", kinds(Decide(w.Input)))
	w.step(t)
	require.Equal(t, "create 1 c5.xlarge demand", kinds(Decide(w.Input)))
}

// Two purchases within a limit are not put onto one machine that exceeds it, however cheap that is.
func TestImprovementStaysWithinLimits(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Types[2].Price = 0.35
	in := input(p, work("w", 4, 2))
	in.Offerings = p.Offerings()
	require.Equal(t, "create 1 c5.4xlarge demand", kinds(Decide(in)))
	p.Limits.CPU = 12000
	require.Equal(t, map[string]int{"c5.xlarge": 2}, bought(Decide(in)))
}

// usableBy reports whether some waiting work of at least the priority fits on the machine.
func usableBy(demand []fleet.DemandClass, priority int, i *fleet.Instance) bool {
	for k := range demand {
		if ok, _ := demand[k].Each.Fits(i.Free()); ok && demand[k].Count > 0 && demand[k].Priority >= priority {
			return true
		}
	}
	return false
}

// Two kinds of work in turns, each of which needs a machine of its own: one is returned and one bought for each turn, no more.
func TestWorkInTurnsDoesNotThrash(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Max, p.Idle = 1, time.Hour
	p.Types[0].Attributes, p.Types[1].Attributes = map[string]string{"kind": "a"}, map[string]string{"kind": "b"}
	w := &world{Input: input(p)}
	for turn := range 20 {
		d := work("w", 2, 1)
		d.Constraints = []*constraint.Constraint{{LTarget: "${attr.kind}", RTarget: string("ab"[turn%2])}}
		w.Demand = []fleet.DemandClass{d}
		for range 10 {
			w.step(t)
		}
		require.Len(t, w.Instances, 1)
		require.Equal(t, 1, w.Instances[0].Work)
		w.Instances[0].Work, w.Instances[0].Used, w.Instances[0].IdleAt = 0, drover.Capacity{}, w.Now
	}
	require.Equal(t, 20, w.bought)
	require.Equal(t, 19, w.drained)
}

// A pool returns what another pool's work needs of a quota, no more than that, and nothing that work as urgent needs.
func TestAPoolYieldsTheQuotaThatAnotherOneNeeds(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p, work("w", 2, 1))
	for n := range 3 {
		i := machine(p, fmt.Sprint("m", n), "c5.large", fleet.InstanceActive)
		i.IdleAt = start.Add(-time.Second)
		in.Instances = append(in.Instances, i)
	}
	in.Short = []Shortage{{Group: "c", Units: 1, Priority: 50}}
	require.Equal(t, "drain m1 surplus", kinds(Decide(in)))
	in.Short[0].Units = 5
	require.Equal(t, "drain m1 surplus; drain m2 surplus", kinds(Decide(in)))
	in.Short[0].Priority = 51
	require.Equal(t, "drain m0 surplus; drain m1 surplus; drain m2 surplus", kinds(Decide(in)))
	in.Short[0].Group = "m"
	require.Empty(t, kinds(Decide(in)))
}

func TestAShortageOfAQuotaIsTold(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Types = p.Types[:3]
	in := input(p, work("w", 2, 3))
	in.GroupUsed["c"] = 4
	in.Beliefs.Created(start, &in.Offerings[0], p.Template(), 0, 4, &provider.Error{Kind: provider.Quota, Group: "c"})
	require.Equal(t, []Shortage{{"c", 3, 50}}, Decide(in).Short)
}
