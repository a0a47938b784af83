package scaler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/learned"
	"github.com/drover-project/drover/internal/fleet/provider"
)

var start = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// policy is a small catalogue: price is linear in size, with a discount for the biggest.
func policy() *fleet.Policy {
	size := func(name string, cores int64, price float64) fleet.InstanceType {
		return fleet.InstanceType{
			Name: name, Capacity: drover.Capacity{CPU: cores * 1000, MemoryMB: cores * 2048, DiskMB: 50000}, Price: price,
			SpotPrice: price / 3, Interrupted: 0.02,
		}
	}
	p := &fleet.Policy{
		Name: "p", Provider: "sim", Zones: []string{"a", "b"}, Image: "img",
		Types: []fleet.InstanceType{size("c5.large", 2, 0.1), size("c5.xlarge", 4, 0.2), size("c5.4xlarge", 16, 0.7), size("m5.large", 2, 0.12)},
	}
	p.Canonicalize()
	return p
}

func input(p *fleet.Policy, demand ...fleet.DemandClass) Input {
	return Input{
		Now: start, Policy: p, Offerings: p.Offerings(), Demand: demand, GroupUsed: map[string]int64{},
		Beliefs: learned.New(1, provider.Capabilities{Batch: 100, Idempotent: true}), Listed: true, Settled: true,
	}
}

func work(name string, cores, n int) fleet.DemandClass {
	return fleet.DemandClass{
		Name: name, Each: drover.Capacity{CPU: int64(cores) * 1000, MemoryMB: int64(cores) * 1024}, Count: n,
		Priority: 50, Since: start,
	}
}

// bought sums the creates by type.
func bought(out Output) map[string]int {
	m := map[string]int{}
	for _, a := range out.Actions {
		if a.Kind == fleet.ActionCreate {
			m[a.Buys.Type] += a.Count
		}
	}
	return m
}

func machine(p *fleet.Policy, id, typ string, state fleet.InstanceState) *fleet.Instance {
	for _, o := range p.Offerings() {
		if o.Type == typ && o.Zone == "a" && o.Market == fleet.MarketOnDemand {
			i := &fleet.Instance{
				Durable: fleet.Durable{
					ID: id, ProviderID: "cloud-" + id, Offering: o.Key, Template: p.Template(),
					State: state, Behavior: fleet.BehaviorRun, Price: o.Price,
					PlannedAt: start.Add(-time.Hour), CreatedAt: start.Add(-time.Hour), StateAt: start.Add(-time.Hour), ReadyAt: start.Add(-time.Hour),
				},
				Type: typ, Zone: o.Zone, Market: o.Market, Capacity: o.Capacity, QuotaGroup: o.QuotaGroup, QuotaUnits: 1, Billing: o.Billing,
			}
			if state == fleet.InstanceActive {
				i.IdleAt = start.Add(-time.Second)
			}
			return i
		}
	}
	panic("no type " + typ)
}

func kinds(out Output) string {
	var s []string
	for _, a := range out.Actions {
		if a.Kind == fleet.ActionCreate {
			s = append(s, fmt.Sprintf("%s %d %s %s", a.Kind, a.Count, a.Buys.Type, a.Why))
		} else {
			s = append(s, fmt.Sprintf("%s %s %s", a.Kind, a.Instance, a.Why))
		}
	}
	return strings.Join(s, "; ")
}

func TestSmallWorkIsPackedOntoTheCheapestMachines(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]int{"c5.4xlarge": 2}, bought(Decide(input(policy(), work("w", 1, 32)))))
	require.Equal(t, map[string]int{"c5.large": 1}, bought(Decide(input(policy(), work("w", 1, 1)))))
	require.Equal(t, map[string]int{"c5.4xlarge": 1, "c5.large": 1}, bought(Decide(input(policy(), work("w", 1, 18)))))
}

func TestWhatIsStartingIsNotBoughtTwice(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p, work("w", 1, 4))
	for n, state := range []fleet.InstanceState{fleet.InstancePlanned, fleet.InstanceCreating} {
		i := machine(p, fmt.Sprint(n), "c5.large", state)
		i.PlannedAt, i.StateAt = start, start
		in.Instances = append(in.Instances, i)
	}
	require.Empty(t, kinds(Decide(in)))
	in.Demand[0].Count = 6
	require.Equal(t, "create 1 c5.large demand", kinds(Decide(in)))
}

func TestIdleMachinesThatFitAreUsedAndKept(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p, work("w", 2, 1))
	i := machine(p, "x", "c5.large", fleet.InstanceActive)
	i.IdleAt = start.Add(-time.Hour)
	in.Instances = append(in.Instances, i)
	require.Empty(t, kinds(Decide(in)))
	in.Demand = nil
	require.Equal(t, "drain x idle", kinds(Decide(in)))
}

func TestLackOfCapacityFallsBackInTheSamePass(t *testing.T) {
	t.Parallel()
	in := input(policy(), work("w", 1, 2))
	first := Decide(in).Actions[0].Buys
	in.Beliefs.Created(start, first, in.Policy.Template(), 0, 0, &provider.Error{Kind: provider.Capacity, Scope: provider.ScopeOffering})
	second := Decide(in).Actions[0].Buys
	require.Equal(t, first.Type, second.Type)
	require.NotEqual(t, first.Zone, second.Zone)
	in.Beliefs.Created(start, second, in.Policy.Template(), 0, 0, &provider.Error{Kind: provider.Capacity, Scope: provider.ScopeType})
	require.Equal(t, "create 1 m5.large demand", kinds(Decide(in)))
	in.Now = start.Add(2 * time.Minute)
	require.Equal(t, "create 1 c5.large demand", kinds(Decide(in)))
}

func TestQuotaBlocksItsGroupOnlyAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	in := input(policy(), work("w", 1, 8))
	o := in.Offerings[0]
	in.GroupUsed["c"] = 5
	in.Beliefs.Created(start, &o, "t", 0, 5, &provider.Error{Kind: provider.Quota, Group: "c"})
	require.Equal(t, map[string]int{"m5.large": 4}, bought(Decide(in)))
	in.GroupUsed["c"] = 4 // one was destroyed
	require.Contains(t, kinds(Decide(in)), "c5")
	in.GroupUsed["c"] = 5
	in.Now = start.Add(2 * time.Minute) // a probe of one
	probe := Decide(in)
	require.Contains(t, kinds(probe), "create 1 c5")
	require.LessOrEqual(t, bought(probe)["c5.large"]+bought(probe)["c5.xlarge"]+bought(probe)["c5.4xlarge"], 1)
}

func TestEverythingBlockedIsExplained(t *testing.T) {
	t.Parallel()
	in := input(policy(), work("w", 1, 2), work("huge", 64, 1))
	for i := range in.Offerings {
		in.Beliefs.Created(start, &in.Offerings[i], "t", 0, 0, &provider.Error{Kind: provider.Capacity, Scope: provider.ScopeOffering})
	}
	out := Decide(in)
	require.Empty(t, out.Actions)
	require.Contains(t, out.Waiting[0].Reason, "big enough")
	require.Contains(t, out.Waiting[1].Reason, "first of 2, waits for sim/c5.large/")
	require.Contains(t, out.Waiting[1].Reason, "tried again in 3")
	require.False(t, out.Wake.IsZero())
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*fleet.Policy)
		want   int
		reason string
	}{
		{"max", func(p *fleet.Policy) { p.Max = 3 }, 3, "maximum of 3"},
		{"cpu", func(p *fleet.Policy) { p.Limits.CPU = 4000 }, 2, "limit of cpu"},
		{"per hour", func(p *fleet.Policy) { p.Budget.PerHour = 0.45 }, 4, "0.45 an hour"},
		{"per day", func(p *fleet.Policy) { p.Budget.PerDay = 0.3 }, 3, "0.30 a day"},
		{"alert", func(p *fleet.Policy) { p.Budget.PerHour, p.Budget.AtLimit = 0.1, fleet.BudgetAlert }, 10, ""},
		{"not critical", func(p *fleet.Policy) {
			p.Budget = fleet.Budget{PerHour: 0.1, AtLimit: fleet.BudgetCritical, CriticalPriority: 51}
		}, 1, "0.10 an hour"},
		{"critical", func(p *fleet.Policy) {
			p.Budget = fleet.Budget{PerHour: 0.1, AtLimit: fleet.BudgetCritical, CriticalPriority: 50}
		}, 10, ""},
		{"paused", func(p *fleet.Policy) { p.PauseCreates = true }, 0, "paused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := policy()
			p.Types = p.Types[:1]
			tt.change(p)
			out := Decide(input(p, work("w", 2, 10)))
			require.Equal(t, tt.want, bought(out)["c5.large"])
			require.Contains(t, out.Waiting[0].Reason, tt.reason)
		})
	}
}

func TestUrgentWorkComesFirst(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Max = 1
	urgent := work("urgent", 2, 1)
	urgent.Priority = 90
	out := Decide(input(p, work("plain", 4, 10), urgent))
	require.Equal(t, "urgent", out.Waiting[0].Class)
	require.Equal(t, 1, out.Waiting[0].Bought)
}

func TestConstraintsAndDevices(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Types[3].Attributes = map[string]string{"attr.cpu.arch": "arm64"}
	p.Types[3].Devices = map[string]int{"gpu": 2}
	arm := work("arm", 1, 1)
	arm.Constraints = []*constraint.Constraint{{LTarget: "${attr.cpu.arch}", RTarget: "arm64", Operand: "="}}
	require.Equal(t, map[string]int{"m5.large": 1}, bought(Decide(input(p, arm))))
	gpu := work("gpu", 1, 3)
	gpu.Devices = map[string]int{"gpu": 1}
	require.Equal(t, map[string]int{"m5.large": 2}, bought(Decide(input(p, gpu))))
	apart := work("apart", 1, 3)
	apart.Constraints = []*constraint.Constraint{{Operand: "distinct_hosts"}}
	require.Equal(t, map[string]int{"c5.large": 3}, bought(Decide(input(p, apart))))
	arm.Constraints[0].RTarget = "riscv"
	require.Contains(t, Decide(input(p, arm)).Waiting[0].Reason, "meets the constraints")
}

func TestMinimumStandbyAndSchedule(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Min = 2
	require.Equal(t, "create 2 c5.large minimum", kinds(Decide(input(p))))
	p.Schedule = []fleet.Schedule{{Cron: "0 9 * * 6", Zone: "Europe/Berlin", Duration: time.Hour, Min: 5}}
	require.NoError(t, p.Validate())
	require.Equal(t, "create 5 c5.large minimum", kinds(Decide(input(p))))
	p.Min, p.Schedule = 0, nil
	p.Standby = []fleet.Standby{{Each: drover.Capacity{CPU: 2000, MemoryMB: 1024}, Count: 1}}
	in := input(p)
	require.Equal(t, "create 1 c5.large standby", kinds(Decide(in)))
	idle := machine(p, "x", "c5.large", fleet.InstanceActive)
	idle.IdleAt = start.Add(-time.Hour)
	in.Instances = append(in.Instances, idle)
	require.Empty(t, kinds(Decide(in)), "standby room is neither bought twice nor returned")
}

func TestSpotIsSpread(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Spot = fleet.SpotPrefer
	out := Decide(input(p, work("w", 16, 12)))
	zones := map[string]int{}
	for _, a := range out.Actions {
		require.Equal(t, fleet.MarketSpot, a.Buys.Market)
		zones[a.Buys.Zone] += a.Count
	}
	require.InDelta(t, zones["a"], zones["b"], 4)
}

func TestDestructionOnlyWhenSettledAndNeverOfBusyOrHeld(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p)
	long := start.Add(-2 * time.Hour)
	add := func(id string, state fleet.InstanceState, change func(*fleet.Instance)) {
		i := machine(p, id, "c5.large", state)
		i.IdleAt = long
		change(i)
		in.Instances = append(in.Instances, i)
	}
	busy := func(i *fleet.Instance) { i.Work, i.Used, i.IdleAt = 1, drover.Capacity{CPU: 100}, time.Time{} }
	add("busy", fleet.InstanceActive, busy)
	add("held", fleet.InstanceActive, func(i *fleet.Instance) { i.Behavior = fleet.BehaviorHold })
	add("idle", fleet.InstanceActive, func(*fleet.Instance) {})
	add("stuck", fleet.InstanceBooting, func(i *fleet.Instance) { i.Adopted = false })
	add("lost", fleet.InstanceActive, func(i *fleet.Instance) { i.LostAt = long })
	add("quiet", fleet.InstanceDraining, func(i *fleet.Instance) { i.Quiet = true })
	add("lostbusy", fleet.InstanceActive, func(i *fleet.Instance) { busy(i); i.LostAt = long })
	add("orphan", fleet.InstanceOrphaned, func(*fleet.Instance) {})
	add("operator", fleet.InstanceActive, func(i *fleet.Instance) { busy(i); i.Behavior = fleet.BehaviorDrain })
	add("calledoff", fleet.InstanceDraining, func(i *fleet.Instance) { busy(i); i.Why = WhyIdle })
	in.Settled = false
	require.Empty(t, kinds(Decide(in)))
	in.Settled = true
	require.Equal(t, "destroy quiet drained; destroy orphan orphan; destroy stuck boot; destroy lost lost; "+
		"drain operator behavior; undrain calledoff demand; drain idle idle", kinds(Decide(in)))
	p.PauseDestroys = true
	require.Empty(t, kinds(Decide(in)))
}

func TestHourlyMachinesAreReturnedAtTheEndOfThePaidHour(t *testing.T) {
	t.Parallel()
	p := policy()
	for i := range p.Types {
		p.Types[i].Billing.Granularity = time.Hour
	}
	in := input(p)
	i := machine(p, "x", "c5.large", fleet.InstanceActive)
	i.CreatedAt, i.IdleAt = start.Add(-30*time.Minute), start.Add(-20*time.Minute)
	in.Instances = append(in.Instances, i)
	out := Decide(in)
	require.Empty(t, out.Actions)
	require.Equal(t, start.Add(28*time.Minute+tick), out.Wake)
	in.Now = out.Wake
	require.Equal(t, "drain x idle", kinds(Decide(in)))
}

func TestExpiryAndDriftStayWithinTheShare(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Disruption = 0.2
	in := input(p)
	for n := range 10 {
		i := machine(p, fmt.Sprint(n), "c5.large", fleet.InstanceActive)
		i.Work, i.Template = 1, "old"
		in.Instances = append(in.Instances, i)
	}
	require.Equal(t, "drain 0 drift; drain 1 drift", kinds(Decide(in)))
}

func TestInterruptedMachinesAreDrainedAndReplacedNow(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p)
	i := machine(p, "x", "c5.large", fleet.InstanceActive)
	i.Work, i.Used, i.InterruptAt = 2, drover.Capacity{CPU: 2000, MemoryMB: 2000}, start.Add(2*time.Minute)
	in.Instances = append(in.Instances, i)
	require.Equal(t, "drain x interrupted; create 1 c5.large demand", kinds(Decide(in)))
}

func TestSlowBootsAreHedged(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p, work("w", 2, 1))
	i := machine(p, "x", "c5.large", fleet.InstanceBooting)
	i.PlannedAt, i.StateAt = start.Add(-95*time.Second), start.Add(-90*time.Second)
	in.Instances = append(in.Instances, i)
	require.Equal(t, "create 1 c5.large hedge", kinds(Decide(in)))
	h := machine(p, "y", "c5.large", fleet.InstanceBooting)
	h.PlannedAt, h.Hedge = start, true
	in.Instances = append(in.Instances, h)
	require.Empty(t, kinds(Decide(in)))
}

func TestImagesThatDoNotBootOpenTheBreaker(t *testing.T) {
	t.Parallel()
	in := input(policy(), work("w", 1, 1))
	for range 3 {
		for i := range in.Offerings {
			in.Beliefs.BootFailed(start, &in.Offerings[i], in.Policy.Template())
		}
	}
	out := Decide(in)
	require.Empty(t, out.Actions)
	require.Contains(t, out.Waiting[0].Reason, "3 of the last 3 did not boot")
	in.Now = out.Wake
	require.Len(t, Decide(in).Actions, 1)
}

func TestCreatesNeverStarveDestroys(t *testing.T) {
	t.Parallel()
	p := policy()
	in := input(p, work("w", 2, 500))
	in.Beliefs = learned.New(1, provider.Capabilities{Batch: 1, Rates: map[provider.Call]provider.Rate{provider.CallCreate: {
		PerSecond: 1,
		Burst:     3,
	}, provider.CallDestroy: {PerSecond: 1, Burst: 2}}})
	for n := range 5 {
		i := machine(p, fmt.Sprint(n), "c5.large", fleet.InstanceDraining)
		i.Quiet = true
		in.Instances = append(in.Instances, i)
	}
	out := Decide(in)
	require.Equal(t, "destroy 0 drained; destroy 1 drained; create 3 c5.4xlarge demand", kinds(out))
	require.Positive(t, out.Deferred)
	require.False(t, out.Wake.IsZero())
}
