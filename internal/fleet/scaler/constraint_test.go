package scaler

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
)

func TestConstraintsOfAnOffering(t *testing.T) {
	t.Parallel()
	o := &fleet.Offering{Type: "c5.large", Zone: "a", Market: fleet.MarketSpot, Attributes: map[string]string{
		"cpu.arch": "amd64", "attr.gpu.count": "4", "meta.rack": "r1, r2", "node.datacenter": "dc1", "empty": "",
	}}
	for _, tt := range []struct {
		left, operand, right string
		want                 bool
	}{
		{"${attr.cpu.arch}", "=", "amd64", true},
		{"${attr.cpu.arch}", "", "amd64", true},
		{"${attr.cpu.arch}", "==", "arm64", false},
		{"${cpu.arch}", "is", "amd64", true},
		{"${attr.cpu.arch}", "!=", "arm64", true},
		{"${attr.cpu.arch}", "not", "amd64", false},
		{"${attr.unknown}", "=", "x", false},
		{"${attr.unknown}", "!=", "x", true},
		{"${attr.unknown}", "is_set", "", false},
		{"${attr.unknown}", "is_not_set", "", true},
		{"${attr.empty}", "is_set", "", true},
		{"${attr.cpu.arch}", "is_not_set", "", false},
		{"${attr.kernel.name}", "=", "linux", true},
		{"${node.datacenter}", "=", "dc1", true},
		{"${node.datacenter}", "=", "dc2", false},
		{"${attr.platform.zone}", "=", "a", true},
		{"${attr.platform.type}", "regexp", `^c5\.`, true},
		{"${attr.platform.type}", "regexp", `^m5\.`, false},
		{"${attr.platform.type}", "regexp", `(`, false},
		{"${attr.platform.market}", "=", "spot", true},
		{"${meta.rack}", "set_contains", "r1,r2", true},
		{"${meta.rack}", "set_contains_all", "r2, r1", true},
		{"${meta.rack}", "set_contains", "r1,r3", false},
		{"${meta.rack}", "set_contains_any", "r3,r2", true},
		{"${meta.rack}", "set_contains_any", "r3,r4", false},
		{"${attr.unknown}", "set_contains_any", "r3", false},
		{"${attr.gpu.count}", ">", "2", true},
		{"${attr.gpu.count}", ">=", "4", true},
		{"${attr.gpu.count}", "<", "10", true}, // as numbers
		{"${attr.gpu.count}", "<=", "3", false},
		{"${attr.gpu.count}", ">", "4", false},
		{"${attr.cpu.arch}", "<", "arm64", true}, // as texts
		{"${attr.unknown}", "<", "5", false},
		{"${attr.kernel.version}", "version", ">= 9.9", true}, // the scheduler has the last word
		{"${attr.kernel.version}", "semver", ">= 9.9", true},
		{"", "distinct_hosts", "", true},
		{"a", "=", "a", true}, // words on both sides
		{"a", "=", "b", false},
		{"${attr.cpu.arch}", "resembles", "x", true},
	} {
		c := &constraint.Constraint{LTarget: tt.left, Operand: tt.operand, RTarget: tt.right}
		require.Equal(t, tt.want, satisfies(o, c), "%s %s %s", tt.left, tt.operand, tt.right)
	}
}

// What stops a purchase is said by name, and how many are left before it.
func TestLimitsOfAPolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		change   func(p *fleet.Policy)
		priority int
		left     int
		why      string
	}{
		{func(*fleet.Policy) {}, 50, 9, ""},
		{func(p *fleet.Policy) { p.Max = 6 }, 50, 4, "the pool's maximum of 6 machines"},
		{func(p *fleet.Policy) { p.Max = 1 }, 50, 0, "the pool's maximum of 1 machines"},
		{func(p *fleet.Policy) { p.Limits.CPU = 10_999 }, 50, 3, "the pool's limit of cpu"},
		{func(p *fleet.Policy) { p.Limits.MemoryMB = 4 * 4096 }, 50, 2, "the pool's limit of memory"},
		{func(p *fleet.Policy) { p.Max, p.Limits.MemoryMB = 5, 4*4096 }, 50, 2, "the pool's limit of memory"}, // the narrowest
		{func(p *fleet.Policy) { p.Budget.PerHour = 0.5 }, 50, 3, "the budget of 0.50 an hour"},
		{func(p *fleet.Policy) { p.Budget.PerDay = 2.5 }, 50, 3, "the budget of 2.50 a day"}, // 2 are spent, and 0.2 are in the next hour
		{func(p *fleet.Policy) { p.Budget.PerDay = 1 }, 50, 0, "the budget of 1.00 a day"},
		{func(p *fleet.Policy) { p.Budget = fleet.Budget{PerHour: 0.1, AtLimit: fleet.BudgetAlert} }, 50, 9, ""},
		{func(p *fleet.Policy) {
			p.Budget = fleet.Budget{PerHour: 0.1, AtLimit: fleet.BudgetCritical, CriticalPriority: 70}
		}, 70, 9, ""},
		{func(p *fleet.Policy) {
			p.Budget = fleet.Budget{PerHour: 0.1, AtLimit: fleet.BudgetCritical, CriticalPriority: 70}
		}, 69, 0, "the budget of 0.10 an hour"},
		{func(p *fleet.Policy) {
			p.Max, p.Budget = 3, fleet.Budget{PerHour: 0.1, AtLimit: fleet.BudgetAlert}
		}, 50, 1, "the pool's maximum of 3 machines"}, // not a matter of money
	} {
		in := input(policy())
		tt.change(in.Policy)
		in.Spent = 2
		for _, id := range []string{"a", "b"} {
			in.Instances = append(in.Instances, machine(in.Policy, id, "c5.large", fleet.InstanceActive))
		}
		p := newPlan(&in)
		p.survey()
		left, why := p.allows(p.offers[p.byKey["sim/c5.large/a/on-demand"]].Offering, 9, tt.priority)
		require.Equal(t, tt.left, left, tt.why)
		require.Equal(t, tt.why, why)
	}
}

// A machine that is about to be gone still takes its place of the limits, but costs nothing of the next hour.
func TestAMachineThatGoesCostsNoMoreOfTheDay(t *testing.T) {
	t.Parallel()
	in := input(policy())
	in.Policy.Budget.PerDay, in.Spent = 2.15, 2
	i := machine(in.Policy, "x", "c5.large", fleet.InstanceActive)
	in.Instances = append(in.Instances, i)
	left := func() int {
		p := newPlan(&in)
		p.survey()
		n, _ := p.allows(p.offers[p.byKey["sim/c5.large/a/on-demand"]].Offering, 1, 50)
		return n
	}
	require.Zero(t, left())
	i.State = fleet.InstanceDestroying
	require.Equal(t, 1, left())
}

// As many fit as can be taken one by one.
func TestFitIsTakingOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var v, each vector
		for d := range v {
			v[d] = int64(rapid.IntRange(0, 40).Draw(t, "room"))
			each[d] = int64(rapid.IntRange(0, 9).Draw(t, "each"))
		}
		n := rapid.IntRange(0, 12).Draw(t, "n")
		want, room := 0, v
		for want < n && room.holds(&each) {
			room.take(&each, 1)
			want++
		}
		require.Equal(t, want, v.fit(&each, n))
		v.take(&each, want)
		require.Equal(t, room, v)
	})
}

func TestDevicesAreADimension(t *testing.T) {
	t.Parallel()
	p := policy()
	for k := range p.Types {
		if p.Types[k].Name == "c5.4xlarge" {
			p.Types[k].Devices = map[string]int{"gpu": 2}
		}
	}
	gpu := work("train", 1, 3)
	gpu.Devices = map[string]int{"gpu": 1}
	require.Equal(t, map[string]int{"c5.4xlarge": 2}, bought(Decide(input(p, gpu))), "two of them on each")
	gpu.Devices = map[string]int{"gpu": 3}
	out := Decide(input(p, gpu))
	require.Empty(t, out.Actions)
	require.Contains(t, out.Waiting[0].Reason, "big enough")
}

// For work that is held no machine is bought, and none is kept.
func TestHeldWork(t *testing.T) {
	t.Parallel()
	w, other := work("held", 1, 8), work("other", 1, 1)
	w.Held = "the budget is spent"
	out := Decide(input(policy(), w, other))
	alone := Decide(input(policy(), other))
	require.Equal(t, bought(alone), bought(out))
	require.Equal(t, "held", out.Waiting[0].Class)
	require.Equal(t, w.Held, out.Waiting[0].Reason)
}

func TestThePriceOfAPiece(t *testing.T) {
	t.Parallel()
	o := &fleet.Offering{
		Type: "c", Market: fleet.MarketSpot, Price: 0.4, Capacity: drover.Capacity{CPU: 4000, MemoryMB: 8000, DiskMB: 100},
		Devices: map[string]int{"gpu": 2},
	}
	for _, tt := range []struct {
		change func(d *fleet.DemandClass)
		want   float64 // 0 = none can run there
	}{
		{func(*fleet.DemandClass) {}, 0.1},
		{func(d *fleet.DemandClass) { d.Count = 2 }, 0.2}, // no more of its like are there
		{func(d *fleet.DemandClass) { d.Count = 0 }, 0.4},
		{func(d *fleet.DemandClass) { d.Each.MemoryMB = 4000 }, 0.2},
		{func(d *fleet.DemandClass) { d.Each.DiskMB = 101 }, 0},
		{func(d *fleet.DemandClass) { d.Devices = map[string]int{"gpu": 1} }, 0.2},
		{func(d *fleet.DemandClass) { d.Devices = map[string]int{"gpu": 3} }, 0},
		{func(d *fleet.DemandClass) { d.OnDemand = true }, 0},
		{func(d *fleet.DemandClass) { d.Constraints = []*constraint.Constraint{{Operand: "distinct_hosts"}} }, 0.4},
		{func(d *fleet.DemandClass) {
			d.Constraints = []*constraint.Constraint{{Operand: "distinct_hosts", RTarget: "false"}}
		}, 0.1},
		{func(d *fleet.DemandClass) {
			d.Constraints = []*constraint.Constraint{{LTarget: "${attr.platform.type}", Operand: "=", RTarget: "m"}}
		}, 0},
		{func(d *fleet.DemandClass) {
			d.Refusals = []fleet.Refusal{{Pool: "p", Template: "t", Needs: "driver docker"}}
		}, 0},
	} {
		d := work("w", 1, 9)
		tt.change(&d)
		got, ok := PricePerPiece(o, &d, "p", "t")
		require.Equal(t, tt.want > 0, ok, "%+v", d)
		require.InDelta(t, tt.want, got, 1e-9, "%+v", d)
	}
}
