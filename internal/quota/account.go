package quota

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/device"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/tenancy"
)

// Account is a quota's limit with what is used of it. Nil refuses nothing.
type Account struct {
	Quota  string
	Limits *tenancy.QuotaLimit
	Used   Use
}

// Accounts is an optional power of what reads the state.
type Accounts interface {
	// QuotaAccount returns the account that pays for what is in a namespace, the caller's own; nil if nothing limits that.
	QuotaAccount(namespace string) *Account
}

// AccountOf is the account that pays for what is in the namespace, if the state knows accounts.
func AccountOf(state any, namespace string) *Account {
	if accounts, ok := state.(Accounts); ok {
		return accounts.QuotaAccount(namespace)
	}
	return nil
}

// bound is one limit and how much it counts of an amount.
type bound struct {
	name  string
	unit  string // "" or begins with a space
	limit *int
	of    func(Amount) int64
}

// part is what limits of a region and of a node pool have in common.
type part struct {
	cpu, cores, memory, memoryMax, allocations *int
	devices                                    []*tenancy.QuotaDevice
}

func (p part) bounds() []bound {
	out := []bound{
		{"cpu", "", p.cpu, func(a Amount) int64 { return a.CPU }},
		{"cores", "", p.cores, func(a Amount) int64 { return a.Cores }},
		{"memory", "", p.memory, func(a Amount) int64 { return a.MemoryMB }},
		{"memory_max", "", p.memoryMax, func(a Amount) int64 { return a.MemoryMaxMB }},
		{"allocations", "", p.allocations, func(a Amount) int64 { return a.Allocations }},
	}
	for _, d := range p.devices {
		limit := -1 // none
		if d.Count != nil && *d.Count > 0 {
			limit = int(*d.Count)
		}
		out = append(out, bound{fmt.Sprintf("device %q", d.Name), "", &limit, func(a Amount) int64 { return devicesOf(a, d.Name) }})
	}
	return out
}

// devicesOf counts the devices that a name stands for, also among those that are asked for by such a name.
func devicesOf(a Amount, name string) (n int64) {
	for group, count := range a.Devices {
		parts := strings.SplitN(group, "/", 3)
		for len(parts) < 3 { // asked for as type or vendor/type
			if len(parts) == 1 {
				parts = []string{"", parts[0]}
				continue
			}
			parts = append(parts, "")
		}
		if group == name || device.Named(name, parts[0], parts[1], parts[2]) {
			n += count
		}
	}
	return n
}

// exceeds says what of add does not fit beside used; only what grows can exceed.
func exceeds(bounds []bound, used, add Amount, where string) (out []string) {
	for _, b := range bounds {
		if b.limit == nil || *b.limit == 0 {
			continue
		}
		limit, has, more := max(int64(*b.limit), 0), b.of(used), b.of(add)
		if more > 0 && has+more > limit {
			out = append(out, fmt.Sprintf("%s%s exhausted (%d%s needed > %d left of %d)", where, b.name, more, b.unit, max(limit-has, 0), limit))
		}
	}
	return out
}

// Exceeds says, one sentence a limit, what refuses that much more in a node pool; none if it may be used. "" is no pool.
func (a *Account) Exceeds(pool string, more Amount) []string {
	if a == nil || a.Limits == nil {
		return nil
	}
	var bounds []bound
	r := a.Limits.RegionLimit
	if r != nil {
		bounds = part{r.CPU, r.Cores, r.MemoryMB, r.MemoryMaxMB, r.Allocations, r.Devices}.bounds()
		bounds = append(bounds, bound{"runners", "", r.Runners, func(x Amount) int64 { return x.Runners }},
			bound{"executions", "", r.Executions, func(x Amount) int64 { return x.Executions }})
	}
	if mb := VariablesMB(a.Limits); mb != 0 {
		bytes := mb << 20
		bounds = append(bounds, bound{"variables", " bytes", &bytes, func(x Amount) int64 { return x.VariablesBytes }})
	}
	out := exceeds(bounds, a.Used.Total, more, "")
	if r == nil {
		return out
	}
	for _, p := range r.NodePools {
		if p.NodePool == pool {
			of := part{p.CPU, p.Cores, p.MemoryMB, p.MemoryMaxMB, p.Allocations, p.Devices}.bounds()
			out = append(out, exceeds(of, a.Used.Pools[pool], more, fmt.Sprintf("node pool %q: ", pool))...)
		}
	}
	return out
}

// Refusal is the error of what that much more exceeds; nil if it may be used. Errors: Exhausted, with the quota's name.
func (a *Account) Refusal(pool string, more Amount) error {
	if exceeds := a.Exceeds(pool, more); len(exceeds) > 0 {
		return drover.Errorf(drover.Exhausted, "quota %q: %s", a.Quota, strings.Join(exceeds, ", "))
	}
	return nil
}

// BoundsRunners reports whether it bounds how many runners are claimed.
func (a *Account) BoundsRunners() bool {
	return a.bounds(func(r *tenancy.QuotaResources) *int { return r.Runners })
}

// BoundsExecutions reports whether it bounds how many executions run.
func (a *Account) BoundsExecutions() bool {
	return a.bounds(func(r *tenancy.QuotaResources) *int { return r.Executions })
}

func (a *Account) bounds(of func(*tenancy.QuotaResources) *int) bool {
	if a == nil || a.Limits == nil || a.Limits.RegionLimit == nil {
		return false
	}
	limit := of(a.Limits.RegionLimit)
	return limit != nil && *limit != 0
}

// Add counts that much more; a nil account counts nothing.
func (a *Account) Add(pool string, more Amount) {
	if a != nil {
		a.Used = a.Used.Add(pool, more)
	}
}

// Take counts as many of the same as there is room for, at most n, and returns how many that are.
func (a *Account) Take(pool string, each Amount, n int) int {
	if a == nil || n <= 0 {
		return n
	}
	n = sort.Search(n, func(i int) bool { return len(a.Exceeds(pool, each.times(i+1))) > 0 })
	a.Add(pool, each.times(n))
	return n
}

// VariablesMB is the limit of variables in MB; 0: none, below 0: no variable may be stored.
func VariablesMB(l *tenancy.QuotaLimit) int {
	if l.RegionLimit != nil && l.RegionLimit.Storage != nil && l.RegionLimit.Storage.VariablesMB != 0 {
		return l.RegionLimit.Storage.VariablesMB
	}
	if l.VariablesLimit != nil {
		return *l.VariablesLimit
	}
	return 0
}

// Overspent is the error of an execution that is to begin when as much was spent on the day; nil if it may. Executions that began before
// may spend more. Errors: Exhausted, with the quota's name.
func (a *Account) Overspent(spent execution.Spent) error {
	if a == nil || a.Limits == nil || a.Limits.RegionLimit == nil {
		return nil
	}
	r := a.Limits.RegionLimit
	for _, b := range []struct {
		name  string
		limit *int
		unit  string
		spent float64
	}{
		{"execution_cpu_seconds", r.ExecutionCPUSeconds, "CPU-seconds", spent.CPU.Seconds()},
		{"execution_mb", r.ExecutionMB, "MB", float64(spent.Bytes) / (1 << 20)},
	} {
		if b.limit == nil || *b.limit == 0 {
			continue
		}
		if limit := max(*b.limit, 0); b.spent >= float64(limit) {
			return drover.Errorf(drover.Exhausted, "quota %q: %s exhausted (%.1f %s used of %d for today, which ends at 00:00 UTC)",
				a.Quota, b.name, b.spent, b.unit, limit)
		}
	}
	return nil
}

// FleetSpent says why no machine is bought for what waits in the quota's namespaces, if machines cost as much on the day; "" if one may be.
func (a *Account) FleetSpent(cost float64) string {
	if !a.BoundsFleet() {
		return ""
	}
	limit := max(*a.Limits.RegionLimit.FleetPerDay, 0)
	if cost < limit {
		return ""
	}
	return fmt.Sprintf("quota %q: fleet_per_day exhausted (%s spent of %s for today, which ends at 00:00 UTC)",
		a.Quota, fleet.Money(cost), fleet.Money(limit))
}

// BoundsFleet reports whether it bounds what the fleet's machines cost.
func (a *Account) BoundsFleet() bool {
	if a == nil || a.Limits == nil || a.Limits.RegionLimit == nil {
		return false
	}
	limit := a.Limits.RegionLimit.FleetPerDay
	return limit != nil && *limit != 0
}

// Usage is what is used of a quota, in the form of its limit. Spent and fleet, what machines cost, are those of the day.
func Usage(q *tenancy.QuotaSpec, used Use, spent execution.Spent, fleet float64) *tenancy.QuotaUsage {
	l := q.Limit()
	if l == nil {
		l = &tenancy.QuotaLimit{Region: q.Here}
		l.Hash = Hash(l)
	}
	t := used.Total
	mb := func(bytes int64) int { return int((bytes + 1<<20 - 1) >> 20) }
	shown := &tenancy.QuotaLimit{
		Region: l.Region, Hash: l.Hash, VariablesLimit: new(mb(t.VariablesBytes)),
		RegionLimit: &tenancy.QuotaResources{
			CPU: new(int(t.CPU)), Cores: new(int(t.Cores)), MemoryMB: new(int(t.MemoryMB)), MemoryMaxMB: new(int(t.MemoryMaxMB)),
			Allocations: new(int(t.Allocations)), Runners: new(int(t.Runners)), Executions: new(int(t.Executions)),
			ExecutionCPUSeconds: new(int(spent.CPU.Seconds())), ExecutionMB: new(mb(spent.Bytes)), FleetPerDay: new(fleet),
			Storage: &tenancy.QuotaStorage{VariablesMB: mb(t.VariablesBytes)},
		},
	}
	if l.RegionLimit != nil {
		shown.RegionLimit.Devices = usedDevices(l.RegionLimit.Devices, t)
		for _, p := range l.RegionLimit.NodePools {
			of := used.Pools[p.NodePool]
			shown.RegionLimit.NodePools = append(shown.RegionLimit.NodePools, &tenancy.QuotaNodePool{
				NodePool: p.NodePool, CPU: new(int(of.CPU)), Cores: new(int(of.Cores)), MemoryMB: new(int(of.MemoryMB)),
				MemoryMaxMB: new(int(of.MemoryMaxMB)), Allocations: new(int(of.Allocations)), Devices: usedDevices(p.Devices, of),
			})
		}
	}
	return &tenancy.QuotaUsage{
		Name: q.Name, Used: map[string]*tenancy.QuotaLimit{key(l.Hash): shown}, CreateIndex: q.CreateIndex, ModifyIndex: q.ModifyIndex,
	}
}

// usedDevices counts those that are limited.
func usedDevices(limited []*tenancy.QuotaDevice, used Amount) []*tenancy.QuotaDevice {
	out := slices.Clone(limited)
	for i, d := range limited {
		out[i] = &tenancy.QuotaDevice{Name: d.Name, Count: new(uint64(max(devicesOf(used, d.Name), 0)))}
	}
	return out
}
