package fleet

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

func TestDefaultsOfAPolicy(t *testing.T) {
	t.Parallel()
	p := &Policy{Name: "p", SSH: &SSH{}, Types: []InstanceType{{Name: "a"}, {Name: "b", Capacity: drover.Capacity{DiskMB: 5}}}}
	p.Canonicalize()
	require.Equal(t, &Policy{
		Name: "p", NodePool: "p", BootTimeout: 15 * time.Minute, LostTimeout: 10 * time.Minute, AdoptGrace: 30 * time.Second,
		OrphanGrace: 10 * time.Minute, TerminateAtDead: 15 * time.Minute, WaitCost: 1, Disruption: 0.1, SpotSpread: 3,
		Budget: Budget{AtLimit: BudgetQueue}, SSH: &SSH{Port: 22},
		Types: []InstanceType{{Name: "a", Capacity: drover.Capacity{DiskMB: 20_000}}, {Name: "b", Capacity: drover.Capacity{DiskMB: 5}}},
	}, p)
	again := *p
	again.Canonicalize()
	require.Equal(t, *p, again, "what is canonical stays as it is")
	said := &Policy{Name: "p", NodePool: "q", WaitCost: 5, Disruption: 0.5, SpotSpread: 1, LostTimeout: time.Second, SSH: &SSH{Port: 9}}
	said.Canonicalize()
	require.Equal(t, "q", said.NodePool)
	require.InDelta(t, 5, said.WaitCost, 0)
	require.InDelta(t, 0.5, said.Disruption, 0)
	require.Equal(t, 1, said.SpotSpread)
	require.Equal(t, time.Second, said.LostTimeout)
	require.Equal(t, 9, said.SSH.Port)
}

func TestMoreThatIsRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(p *Policy){
		"fleet.Name: must be 1 to 128 letters":                              func(p *Policy) { p.Name = "" },
		"fleet[p].NodePool: must be 1 to 128 letters":                       func(p *Policy) { p.NodePool = "a/b" },
		"fleet[p].Provider: must name a provider":                           func(p *Policy) { p.Provider = "" },
		"fleet[p].Zones: must have at least one zone":                       func(p *Policy) { p.Zones = nil },
		"fleet[p].Spot: must be empty, prefer or only, got \"always\"":      func(p *Policy) { p.Spot = "always" },
		"fleet[p].Types[0:].Name: must be set":                              func(p *Policy) { p.Types[0].Name = "" },
		"fleet[p].Types[0:c5.large].Price: must be above 0, got 0":          func(p *Policy) { p.Types[0].Price = 0 },
		"fleet[p].Types[0:c5.large].SpotPrice: must not be negative":        func(p *Policy) { p.Types[0].SpotPrice = -1 },
		"fleet[p].Types[0:c5.large].Capacity: must have CPU and MemoryMB":   func(p *Policy) { p.Types[0].Capacity.CPU = 0 },
		"fleet[p].Types[0:c5.large].Billing: must not be negative":          func(p *Policy) { p.Types[0].Billing.Minimum = -1 },
		"fleet[p].Min: must not be negative, got -1":                        func(p *Policy) { p.Min = -1 },
		"fleet[p].Max: must not be negative, got -1":                        func(p *Policy) { p.Max = -1 },
		"fleet[p].Disruption: must be above 0 and at most 1, got 2":         func(p *Policy) { p.Disruption = 2 },
		"fleet[p].SpotSpread: must be above 0, got -1":                      func(p *Policy) { p.SpotSpread = -1 },
		"fleet[p].WaitCost: must not be negative, got -1":                   func(p *Policy) { p.WaitCost = -1 },
		"fleet[p].Standby[0]: must have a Count above 0 and a size":         func(p *Policy) { p.Standby = []Standby{{Count: 1}} },
		"fleet[p].Budget: must not be negative":                             func(p *Policy) { p.Budget.PerDay = -1 },
		"fleet[p].Budget.CriticalPriority: must be set":                     func(p *Policy) { p.Budget.AtLimit = BudgetCritical },
		"fleet[p].Limits.CPU: can't hold the minimum: 3 machines have":      func(p *Policy) { p.Min, p.Limits.CPU = 3, 5999 },
		"fleet[p].Schedule[0].Duration: must be above 0 and at most a week": func(p *Policy) { p.Schedule = []Schedule{{Cron: "* * * * *"}} },
		"fleet[p].Schedule[0].Min: must be at most Max (2), got 3": func(p *Policy) {
			p.Max, p.Schedule = 2, []Schedule{{Cron: "* * * * *", Duration: time.Hour, Min: 3}}
		},
		"fleet[p].Limits.MemoryMB: can't hold the minimum: 4 machines": func(p *Policy) { // at the time of the schedule
			p.Limits.MemoryMB, p.Schedule = 3*4096, []Schedule{{Cron: "* * * * *", Duration: time.Hour, Min: 4}}
		},
	} {
		p := goodFleet()
		change(p)
		err := p.Validate()
		require.Equal(t, drover.Invalid, drover.CodeOf(err), want)
		require.ErrorContains(t, err, want)
	}
	p := goodFleet()
	p.Min, p.Disruption = -1, 7
	require.ErrorContains(t, p.Validate(), "Min")
	require.ErrorContains(t, p.Validate(), "Disruption", "all that is wrong is said at once")
}

func TestWhatOperatorsSayLiesOnThePolicy(t *testing.T) {
	t.Parallel()
	p := &Pool{Name: "p", Policy: goodFleet()}
	p.Policy.Min, p.Policy.Schedule, p.Policy.Standby = 2, []Schedule{{Min: 3}}, []Standby{{Count: 1}}
	require.Equal(t, p.Policy, p.Effective())
	p.PauseCreates = true
	e := p.Effective()
	require.True(t, e.PauseCreates)
	require.False(t, e.PauseDestroys)
	require.Equal(t, 2, e.Min)
	require.False(t, p.Policy.PauseCreates, "the policy itself stays as it is")
	p = &Pool{Name: "p", Policy: p.Policy, Retiring: true, PauseDestroys: true}
	e = p.Effective()
	require.True(t, e.PauseCreates && e.PauseDestroys && e.Retiring)
	require.Zero(t, e.Min)
	require.Empty(t, e.Schedule)
	require.Empty(t, e.Standby)
}

func keys(list []Offering) (names []string) {
	for _, o := range list {
		names = append(names, o.Key)
	}
	return names
}

func TestWhatAPolicyMayBuy(t *testing.T) {
	t.Parallel()
	p := goodFleet()
	p.Zones = []string{"a", "b"}
	p.Types = append(p.Types, InstanceType{Name: "m5.large", Capacity: drover.Capacity{CPU: 2000, MemoryMB: 8192}, Price: 0.2})
	const c5a, c5b, m5a, m5b = "sim/c5.large/a/", "sim/c5.large/b/", "sim/m5.large/a/", "sim/m5.large/b/"
	for spot, want := range map[string][]string{
		SpotNever:  {c5a + MarketOnDemand, c5b + MarketOnDemand, m5a + MarketOnDemand, m5b + MarketOnDemand},
		SpotOnly:   {c5a + MarketSpot, c5b + MarketSpot},
		SpotPrefer: {c5a + MarketOnDemand, c5a + MarketSpot, c5b + MarketOnDemand, c5b + MarketSpot, m5a + MarketOnDemand, m5b + MarketOnDemand},
	} {
		p.Spot = spot
		require.Equal(t, want, keys(p.Offerings()), spot)
	}
	p.Spot, p.MaxPrice = SpotPrefer, 0.05
	require.Equal(t, []string{c5a + MarketSpot, c5b + MarketSpot}, keys(p.Offerings()))
	require.Len(t, p.Wanted(), 6, "prices may fall")
	now := p.OfferingsAt(map[string]float64{c5a + MarketSpot: 0.06, m5b + MarketOnDemand: 0.04})
	require.Equal(t, []string{c5b + MarketSpot, m5b + MarketOnDemand}, keys(now))
	require.InDelta(t, 0.04, now[1].Price, 1e-12)
}

func TestFamiliesAndQuotaGroups(t *testing.T) {
	t.Parallel()
	for name, family := range map[string]string{"c5.large": "c", "m": "m", "n2-standard-4": "n", "big_one": "big", "4x": "4x", "": ""} {
		typ := InstanceType{Name: name, Price: 1, SpotPrice: 0.5}
		list := typ.Offerings("p", []string{"z"})
		require.Len(t, list, 2)
		require.Equal(t, family, list[0].Family, name)
		require.Equal(t, family, list[0].QuotaGroup)
		require.Equal(t, family+"-spot", list[1].QuotaGroup)
		require.Equal(t, int64(1), list[1].QuotaUnits)
	}
	typ := InstanceType{Name: "c5", Family: "f", QuotaGroup: "all", QuotaUnits: 4, Price: 1}
	o := typ.Offerings("p", []string{"z"})[0]
	require.Equal(t, []any{"f", "all", int64(4)}, []any{o.Family, o.QuotaGroup, o.QuotaUnits})
}

// What is charged is never less than what ran, grows with it, and is whole granules once the minimum is passed.
func TestBillingNeverChargesLessThanWhatRan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Second
		}
		b := Billing{Granularity: seconds("granularity", 7200), Minimum: seconds("minimum", 7200)}
		d, more := seconds("ran", 100_000), seconds("more", 10_000)
		charged := b.Charged(d)
		require.GreaterOrEqual(t, charged, max(d, b.Minimum))
		require.LessOrEqual(t, charged, b.Charged(d+more))
		require.Less(t, charged, max(d, b.Minimum)+max(b.Granularity, 1))
		if b.Granularity > time.Second {
			require.Zero(t, charged%b.Granularity)
		}
	})
	require.Zero(t, Billing{}.Charged(-time.Hour))
}

func TestARefusalIsOfATemplateAndAType(t *testing.T) {
	t.Parallel()
	d := DemandClass{Refusals: []Refusal{
		{Pool: "p", Template: "t", Type: "c5", Needs: "driver docker"}, {Pool: "q", Template: "t", Needs: "kernel 6"},
	}}
	require.Equal(t, "driver docker", d.Refused("p", "t", "c5"))
	require.Empty(t, d.Refused("p", "t", "m5"), "another type")
	require.Empty(t, d.Refused("p", "new", "c5"), "its template was changed")
	require.Equal(t, "kernel 6", d.Refused("q", "t", "anything"))
}

// Each state is written as a word that is read back, nothing follows the last one, and whatever is there may be lost or go.
func TestEachState(t *testing.T) {
	t.Parallel()
	for s := range instanceStateNames {
		text, err := s.MarshalText()
		require.NoError(t, err)
		var back InstanceState
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, s, back)
		require.False(t, s.CanBecome(s), "%s", s)
		require.Equal(t, s != InstanceGone, s.CanBecome(InstanceGone), "%s", s)
		require.Equal(t, s == InstanceGone, s.Terminal(), "%s", s)
		if s.Starting() {
			require.True(t, s.CanBecome(InstanceActive), "%s", s)
			require.False(t, InstanceActive.CanBecome(s), "%s", s)
		}
	}
	require.Equal(t, "state(7)", InstanceState(7).String())
	require.True(t, InstanceDraining.CanBecome(InstanceActive), "a drain can be called off")
	require.True(t, InstanceOrphaned.CanBecome(InstanceBooting), "an orphan can be adopted")
	require.False(t, InstanceOrphaned.CanBecome(InstancePlanned))
	require.False(t, InstanceDestroying.CanBecome(InstanceDraining))
}

func TestRoomOnAnInstance(t *testing.T) {
	t.Parallel()
	i := Instance{Capacity: drover.Capacity{CPU: 1000, MemoryMB: 2000, DiskMB: 30}, Used: drover.Capacity{CPU: 400, MemoryMB: 2000}}
	require.Equal(t, drover.Capacity{CPU: 600, DiskMB: 30}, i.Free())
	require.False(t, i.Busy())
	i.Work = 1
	require.True(t, i.Busy())
}

// Money is off by half of its second digit at most, and by half a hundredth.
func TestMoneyKeepsTwoDigits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := math.Exp(rapid.Float64Range(-20, 10).Draw(t, "log"))
		back, err := strconv.ParseFloat(Money(v), 64)
		require.NoError(t, err)
		require.InDelta(t, v, back, 0.00501*min(1, 10*v))
	})
}
