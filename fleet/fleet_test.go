package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func goodFleet() *Policy {
	p := &Policy{
		Name: "p", Provider: "sim", Zones: []string{"a"},
		Types: []InstanceType{{Name: "c5.large", Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096}, Price: 0.1, SpotPrice: 0.03}},
	}
	p.Canonicalize()
	return p
}

func TestFleetPolicyIsRefusedWithFieldAndReason(t *testing.T) {
	t.Parallel()
	require.NoError(t, goodFleet().Validate())
	tests := []struct {
		change func(*Policy)
		want   string
	}{
		{func(p *Policy) { p.Types = nil }, "fleet[p].Types: must have at least one type"},
		{func(p *Policy) { p.Types = append(p.Types, p.Types[0]) }, "fleet[p].Types[1:c5.large].Name: is there twice"},
		{func(p *Policy) { p.Min, p.Max = 3, 2 }, "fleet[p].Max: must be at least Min (3), got 2"},
		{func(p *Policy) { p.Min, p.Budget.PerHour = 3, 0.2 }, "fleet[p].Budget.PerHour: can't hold the minimum: 3 machines"},
		{func(p *Policy) { p.Min, p.Budget.PerDay = 1, 2 }, "fleet[p].Budget.PerDay: can't hold the minimum"},
		{
			func(p *Policy) { p.Schedule = []Schedule{{Cron: "61 * * * *", Duration: time.Hour}} },
			"fleet[p].Schedule[0].Cron: must be numbers, as 5, 1-5, */10 or 1,3, or names, in \"61 * * * *\": syntax error in minute field",
		},
		{func(p *Policy) { p.Schedule = []Schedule{{Cron: "* * *", Duration: time.Hour}} }, "five fields"},
		{func(p *Policy) {
			p.Schedule = []Schedule{{Cron: "0 8 * * 1-5", Zone: "Mars/Base", Duration: time.Hour}}
		}, "fleet[p].Schedule[0].Zone"},
		{func(p *Policy) { p.MaxPrice = 0.01 }, "none can be bought"},
		{func(p *Policy) { p.Budget.AtLimit = "explode" }, "fleet[p].Budget.AtLimit"},
		{func(p *Policy) { p.MaxPrice = -1 }, "fleet[p].MaxPrice: must not be negative"},
		{func(p *Policy) { p.Limits.CPU = -5 }, "fleet[p].Limits: must not be negative"},
		{
			func(p *Policy) { p.Min, p.Limits.MemoryMB = 2, 5000 },
			"fleet[p].Limits.MemoryMB: can't hold the minimum: 2 machines have at least 8192, the limit is 5000",
		},
		{func(p *Policy) { p.Tags = map[string]string{TagOwner: "x"} }, "fleet[p].Tags: \"drover-owner\" is a name of ours"},
		{func(p *Policy) { p.Zones = []string{"a", "a"} }, "fleet[p].Zones[1]: must be set, and be there once"},
		{func(p *Policy) { p.Types[0].Devices = map[string]int{"gpu": 0} }, "fleet[p].Types[0:c5.large].Devices: must be above 0"},
		{func(p *Policy) { p.Types[0].QuotaUnits = -1 }, "fleet[p].Types[0:c5.large]: QuotaUnits and Interrupted"},
		{func(p *Policy) { p.SSH = &SSH{} }, "fleet[p].SSH: must have a Key"},
		{func(p *Policy) { p.Datacenter = "a b" }, "fleet[p].Datacenter"},
		{func(p *Policy) { p.Idle = -1 }, "fleet[p].Idle: must not be negative"},
	}
	for _, tt := range tests {
		p := goodFleet()
		tt.change(p)
		err := p.Validate()
		require.ErrorContains(t, err, tt.want)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

func TestOfferingsAndBilling(t *testing.T) {
	t.Parallel()
	p := goodFleet()
	require.Len(t, p.Offerings(), 1)
	p.Spot = SpotPrefer
	require.Equal(t, "sim/c5.large/a/spot", p.Offerings()[1].Key)
	require.Equal(t, "c-spot", p.Offerings()[1].QuotaGroup)
	require.Equal(t, 2*time.Hour, Billing{Granularity: time.Hour}.Charged(61*time.Minute))
	require.Equal(t, time.Minute, Billing{Minimum: time.Minute}.Charged(time.Second))
}

func TestInstanceStates(t *testing.T) {
	t.Parallel()
	require.True(t, InstanceBooting.CanBecome(InstanceActive))
	require.False(t, InstanceActive.CanBecome(InstanceBooting))
	require.False(t, InstanceGone.CanBecome(InstanceActive))
	require.False(t, InstanceDestroying.CanBecome(InstanceActive))
	var s InstanceState
	require.NoError(t, s.UnmarshalText([]byte("draining")))
	require.Equal(t, InstanceDraining, s)
	require.Equal(t, drover.Invalid, drover.CodeOf(s.UnmarshalText([]byte("asleep"))))
}

// TestTheTemplateNamesAllThatIsInAMachine: what a corrected probe or another datacenter changes on machines is drift, and
// what does not boot in one pool is no reason against it in another.
func TestTheTemplateNamesAllThatIsInAMachine(t *testing.T) {
	t.Parallel()
	first := goodFleet().Template()
	require.Equal(t, first, goodFleet().Template())
	seen := map[string]bool{first: true}
	for name, change := range map[string]func(*Policy){
		"pool": func(p *Policy) { p.Name = "q" }, "node pool": func(p *Policy) { p.NodePool = "x" },
		"datacenter": func(p *Policy) { p.Datacenter = "x" }, "region": func(p *Policy) { p.Region = "x" },
		"image": func(p *Policy) { p.Image = "x" }, "user data": func(p *Policy) { p.UserData = "x" },
		"boot probe": func(p *Policy) { p.BootProbe = "x" }, "run probe": func(p *Policy) { p.RunProbe = "x" },
		"dead man": func(p *Policy) { p.TerminateAtDead = time.Hour }, "spot": func(p *Policy) { p.Spot = SpotPrefer },
		"ssh": func(p *Policy) { p.SSH = &SSH{Port: 22} }, "ssh user": func(p *Policy) { p.SSH = &SSH{Port: 22, User: "x"} },
		"host keys": func(p *Policy) { p.SSH = &SSH{Port: 22, HostKeys: []string{"x"}} },
		"tags":      func(p *Policy) { p.Tags = map[string]string{"a": "x"} },
	} {
		p := goodFleet()
		change(p)
		require.False(t, seen[p.Template()], name)
		seen[p.Template()] = true
	}
	p := goodFleet()
	p.Max, p.Idle, p.Budget.PerHour, p.WaitCost = 9, time.Hour, 5, 2 // how many, and for how long
	require.Equal(t, first, p.Template())
}
