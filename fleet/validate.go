package fleet

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/validation"
)

// Validate reports everything that is wrong with a canonicalized policy, joined, each with its field, as one Invalid
// error; nil if it can be used.
func (p *Policy) Validate() error {
	v := &validation.Report{}
	v.Check(validation.IsName(p.Name), "fleet.Name", "must be 1 to 128 letters, digits, '-', '_' or '.', got %q", p.Name)
	at := func(field string) string { return "fleet[" + p.Name + "]." + field }
	v.Check(validation.IsName(p.NodePool), at("NodePool"), "must be 1 to 128 letters, digits, '-', '_' or '.', got %q", p.NodePool)
	v.Check(p.Datacenter == "" || validation.IsName(p.Datacenter), at("Datacenter"),
		"must be 1 to 128 letters, digits, '-', '_' or '.', got %q", p.Datacenter)
	v.Check(p.Provider != "", at("Provider"), "must name a provider")
	v.Check(len(p.Zones) > 0, at("Zones"), "must have at least one zone")
	zones := map[string]bool{}
	for i, z := range p.Zones {
		v.Check(z != "" && !zones[z], at(fmt.Sprintf("Zones[%d]", i)), "must be set, and be there once, got %q", z)
		zones[z] = true
	}
	for key := range p.Tags {
		v.Check(!strings.HasPrefix(key, "drover-"), at("Tags"), "%q is a name of ours: machines are found again by it", key)
	}
	v.Check(p.SSH == nil || p.SSH.Key != "" && p.SSH.Port > 0 && p.SSH.Port < 1<<16, at("SSH"), "must have a Key, and a Port from 1 to 65535")
	v.Check(p.Spot == SpotNever || p.Spot == SpotPrefer || p.Spot == SpotOnly, at("Spot"), "must be empty, prefer or only, got %q", p.Spot)
	p.validateTypes(v, at)
	p.validateSizes(v, at)
	p.validateTimes(v, at)
	p.validateBudget(v, at)
	if err := v.Err(); err != nil {
		return drover.Errorf(drover.Invalid, "fleet policy: %w", err)
	}
	return nil
}

func (p *Policy) validateTypes(v *validation.Report, at func(string) string) {
	v.Check(len(p.Types) > 0, at("Types"), "must have at least one type")
	seen := map[string]bool{}
	for i, t := range p.Types {
		where := at(fmt.Sprintf("Types[%d:%s]", i, t.Name))
		v.Check(t.Name != "", where+".Name", "must be set")
		v.Check(!seen[t.Name], where+".Name", "is there twice")
		seen[t.Name] = true
		v.Check(t.Capacity.CPU > 0 && t.Capacity.MemoryMB > 0 && t.Capacity.DiskMB >= 0, where+".Capacity",
			"must have CPU and MemoryMB above 0, got %+v", t.Capacity)
		v.Check(t.Price > 0, where+".Price", "must be above 0, got %g", t.Price)
		v.Check(t.SpotPrice >= 0, where+".SpotPrice", "must not be negative, got %g", t.SpotPrice)
		v.Check(t.QuotaUnits >= 0 && t.Interrupted >= 0, where, "QuotaUnits and Interrupted must not be negative, got %d and %g", t.QuotaUnits,
			t.Interrupted)
		for name, n := range t.Devices {
			v.Check(n > 0 && name != "", where+".Devices", "must be above 0, got %d of %q", n, name)
		}
		v.Check(t.Billing.Granularity >= 0 && t.Billing.Minimum >= 0, where+".Billing", "must not be negative")
	}
	if len(p.Types) > 0 && len(p.Zones) > 0 {
		v.Check(len(p.Offerings()) > 0, at("Types"), "none can be bought with Spot %q and MaxPrice %g", p.Spot, p.MaxPrice)
	}
}

func (p *Policy) validateSizes(v *validation.Report, at func(string) string) {
	v.Check(p.Min >= 0, at("Min"), "must not be negative, got %d", p.Min)
	v.Check(p.Max >= 0, at("Max"), "must not be negative, got %d", p.Max)
	v.Check(p.Max == 0 || p.Max >= p.Min, at("Max"), "must be at least Min (%d), got %d", p.Min, p.Max)
	v.Check(p.MaxPrice >= 0, at("MaxPrice"), "must not be negative, got %g", p.MaxPrice)
	p.validateLimits(v, at)
	v.Check(p.Disruption > 0 && p.Disruption <= 1, at("Disruption"), "must be above 0 and at most 1, got %g", p.Disruption)
	v.Check(p.SpotSpread > 0, at("SpotSpread"), "must be above 0, got %d", p.SpotSpread)
	v.Check(p.WaitCost >= 0, at("WaitCost"), "must not be negative, got %g", p.WaitCost)
	for i, s := range p.Standby {
		v.Check(s.Count > 0 && s.Each.CPU >= 0 && s.Each.MemoryMB >= 0 && s.Each != drover.Capacity{}, at(fmt.Sprintf("Standby[%d]", i)),
			"must have a Count above 0 and a size, got %+v", s)
	}
}

// validateLimits sees that the minimum fits into the limits, at all times.
func (p *Policy) validateLimits(v *validation.Report, at func(string) string) {
	l := p.Limits
	v.Check(l.CPU >= 0 && l.MemoryMB >= 0 && l.DiskMB >= 0, at("Limits"), "must not be negative, got %+v", l)
	least := p.Min
	for _, s := range p.Schedule {
		least = max(least, s.Min)
	}
	for _, x := range []struct {
		name string
		most int64
		of   func(c drover.Capacity) int64
	}{
		{"CPU", l.CPU, func(c drover.Capacity) int64 { return c.CPU }},
		{"MemoryMB", l.MemoryMB, func(c drover.Capacity) int64 { return c.MemoryMB }},
		{"DiskMB", l.DiskMB, func(c drover.Capacity) int64 { return c.DiskMB }},
	} {
		smallest := int64(0)
		for i := range p.Types {
			if n := x.of(p.Types[i].Capacity); i == 0 || n < smallest {
				smallest = n
			}
		}
		need := smallest * int64(least)
		v.Check(x.most <= 0 || need <= x.most, at("Limits."+x.name), "can't hold the minimum: %d machines have at least %d, the limit is %d",
			least, need, x.most)
	}
}

func (p *Policy) validateTimes(v *validation.Report, at func(string) string) {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"Idle", p.Idle},
		{"Expire", p.Expire},
		{"BootTimeout", p.BootTimeout},
		{"LostTimeout", p.LostTimeout},
		{"AdoptGrace", p.AdoptGrace},
		{"OrphanGrace", p.OrphanGrace},
		{"TerminateAtDead", p.TerminateAtDead},
	} {
		v.Check(d.d >= 0, at(d.name), "must not be negative, got %s", d.d)
	}
	for i, s := range p.Schedule {
		where := at(fmt.Sprintf("Schedule[%d]", i))
		if line, err := parseCron(s.Cron); err != nil {
			v.Addf(where+".Cron", "%s", err)
		} else {
			v.Check(!line.Next(time.Unix(0, 0).UTC()).IsZero(), where+".Cron", "names no time: %q", s.Cron)
		}
		if _, err := time.LoadLocation(s.Zone); err != nil {
			v.Addf(where+".Zone", "is not a known time zone: %q", s.Zone)
		}
		v.Check(s.Duration > 0 && s.Duration <= 7*24*time.Hour, where+".Duration", "must be above 0 and at most a week, got %s", s.Duration)
		v.Check(s.Min >= 0, where+".Min", "must not be negative, got %d", s.Min)
		v.Check(p.Max == 0 || s.Min <= p.Max, where+".Min", "must be at most Max (%d), got %d", p.Max, s.Min)
	}
}

func (p *Policy) validateBudget(v *validation.Report, at func(string) string) {
	b := p.Budget
	v.Check(b.PerHour >= 0 && b.PerDay >= 0, at("Budget"), "must not be negative")
	v.Check(b.AtLimit == BudgetQueue || b.AtLimit == BudgetCritical || b.AtLimit == BudgetAlert, at("Budget.AtLimit"),
		"must be queue, critical or alert, got %q", b.AtLimit)
	v.Check(b.AtLimit != BudgetCritical || b.CriticalPriority > 0, at("Budget.CriticalPriority"), "must be set when AtLimit is critical")
	cheapest := 0.0
	for _, o := range p.Offerings() {
		if cheapest == 0 || o.Price < cheapest {
			cheapest = o.Price
		}
	}
	least := p.Min
	for _, s := range p.Schedule {
		least = max(least, s.Min)
	}
	hourly := float64(least) * cheapest
	v.Check(b.PerHour == 0 || hourly <= b.PerHour, at("Budget.PerHour"),
		"can't hold the minimum: %d machines cost at least %.4g an hour, the budget is %.4g", least, hourly, b.PerHour)
	always := float64(p.Min) * cheapest * 24
	v.Check(b.PerDay == 0 || always <= b.PerDay, at("Budget.PerDay"),
		"can't hold the minimum: %d machines cost at least %.4g a day, the budget is %.4g", p.Min, always, b.PerDay)
}
