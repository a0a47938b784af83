package quota

import (
	"maps"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/secrets"
)

// Amount is how much is used, or asked for. Its map is never changed.
type Amount struct {
	CPU            int64 // MHz of tasks without cores of their own
	Cores          int64
	MemoryMB       int64
	MemoryMaxMB    int64
	Allocations    int64
	Runners        int64 // claimed ones
	Executions     int64
	VariablesBytes int64
	Devices        map[string]int64 // by vendor/type/name, or as they are asked for; nil: none
}

// unbounded is what a task without a maximum of memory counts as: 1 EB, so that any limit refuses it and sums stay in bounds.
const unbounded = 1 << 40

// memoryMax is the most that a task may use. most is its MemoryMaxMB: 0 = as much as it reserves, below 0 no limit.
func memoryMax(reserved, most int64) int64 {
	if most < 0 {
		return unbounded
	}
	return max(reserved, most)
}

// Of is what an allocation counts.
func Of(a *drover.Allocation) Amount {
	if a == nil || !a.HoldsResources() {
		return Amount{}
	}
	out := Held(a.AllocatedResources)
	if a.Claim != nil {
		out.Runners = 1
	}
	return out
}

// Held is what an allocation with such resources counts.
func Held(r *drover.AllocatedResources) Amount {
	out := Amount{Allocations: 1}
	if r == nil {
		return out
	}
	for _, t := range r.Tasks {
		if n := int64(len(t.Cpu.ReservedCores)); n > 0 {
			out.Cores += n
		} else {
			out.CPU += t.Cpu.CpuShares
		}
		out.MemoryMB += t.Memory.MemoryMB
		out.MemoryMaxMB += memoryMax(t.Memory.MemoryMB, t.Memory.MemoryMaxMB)
		for _, d := range t.Devices {
			out.device(d.Vendor+"/"+d.Type+"/"+d.Name, int64(len(d.DeviceIDs)))
		}
	}
	return out
}

// Asked is what an allocation of a group will count; oversubscribed says whether tasks get their MemoryMaxMB.
func Asked(g *drover.TaskGroup, oversubscribed bool) Amount {
	out := Amount{Allocations: 1}
	for _, t := range g.Tasks {
		r := t.Resources
		if r == nil {
			continue
		}
		if r.Cores > 0 {
			out.Cores += int64(r.Cores)
		} else {
			out.CPU += int64(r.CPU)
		}
		most := 0
		if oversubscribed {
			most = r.MemoryMaxMB
		}
		out.MemoryMB += int64(r.MemoryMB)
		out.MemoryMaxMB += memoryMax(int64(r.MemoryMB), int64(most))
		for _, d := range r.Devices {
			out.device(d.Name, int64(max(d.Count, 1)))
		}
	}
	return out
}

// device is for an Amount in the making, which alone has the map.
func (a *Amount) device(name string, n int64) {
	if a.Devices == nil {
		a.Devices = map[string]int64{}
	}
	a.Devices[name] += n
}

// Add returns a + o.
func (a Amount) Add(o Amount) Amount { return a.plus(o, 1) }

// Sub returns a - o.
func (a Amount) Sub(o Amount) Amount { return a.plus(o, -1) }

func (a Amount) times(n int) Amount { return Amount{}.plus(a, int64(n)) }

func (a Amount) plus(o Amount, sign int64) Amount {
	a.CPU += sign * o.CPU
	a.Cores += sign * o.Cores
	a.MemoryMB += sign * o.MemoryMB
	a.MemoryMaxMB += sign * o.MemoryMaxMB
	a.Allocations += sign * o.Allocations
	a.Runners += sign * o.Runners
	a.Executions += sign * o.Executions
	a.VariablesBytes += sign * o.VariablesBytes
	if len(o.Devices) == 0 {
		return a
	}
	devices := maps.Clone(a.Devices)
	if devices == nil {
		devices = map[string]int64{}
	}
	for name, n := range o.Devices {
		if devices[name] += sign * n; devices[name] == 0 {
			delete(devices, name)
		}
	}
	if a.Devices = devices; len(devices) == 0 {
		a.Devices = nil
	}
	return a
}

// IsZero reports whether nothing is counted.
func (a Amount) IsZero() bool {
	return a.CPU == 0 && a.Cores == 0 && a.MemoryMB == 0 && a.MemoryMaxMB == 0 && a.Allocations == 0 && a.Runners == 0 && a.Executions == 0 &&
		a.VariablesBytes == 0 && len(a.Devices) == 0
}

// Use is what is used: in all, and by the jobs of each node pool. The zero value is nothing; only Count changes its map.
type Use struct {
	Total Amount
	Pools map[string]Amount
}

// Pool is the node pool that an allocation counts in: its job's.
func Pool(j *drover.Job) string {
	if j == nil || j.NodePool == "" {
		return drover.DefaultNodePool
	}
	return j.NodePool
}

// Add returns u with a more in the node pool; "" is in none.
func (u Use) Add(pool string, a Amount) Use {
	u = u.Clone()
	u.Count(pool, a)
	return u
}

// Clone returns a copy with a map of its own, for Count.
func (u Use) Clone() Use {
	u.Pools = maps.Clone(u.Pools)
	return u
}

// Count is Add for who alone has the Use and its map.
func (u *Use) Count(pool string, a Amount) {
	u.Total = u.Total.Add(a)
	if pool == "" {
		return
	}
	if u.Pools == nil {
		u.Pools = map[string]Amount{}
	}
	if u.Pools[pool] = u.Pools[pool].Add(a); u.Pools[pool].IsZero() {
		delete(u.Pools, pool)
	}
}

// Sub returns u with a less in the node pool.
func (u Use) Sub(pool string, a Amount) Use { return u.Add(pool, Amount{}.Sub(a)) }

// Sum returns u and o together.
func (u Use) Sum(o Use) Use {
	out := Use{Total: u.Total.Add(o.Total), Pools: maps.Clone(u.Pools)}
	for pool, a := range o.Pools {
		if out.Pools == nil {
			out.Pools = map[string]Amount{}
		}
		out.Pools[pool] = out.Pools[pool].Add(a)
	}
	return out
}

// IsZero reports whether nothing is used.
func (u Use) IsZero() bool { return u.Total.IsZero() && len(u.Pools) == 0 }

// OfVariable is what a variable counts: what of it is encrypted.
func OfVariable(v *secrets.SealedVariable) Amount { return Amount{VariablesBytes: int64(len(v.Data))} }

// LessThan reports whether u is less than o of anything.
func (u Use) LessThan(o Use) bool {
	if u.Total.lessThan(o.Total) {
		return true
	}
	for pool, a := range o.Pools {
		if u.Pools[pool].lessThan(a) {
			return true
		}
	}
	return false
}

func (a Amount) lessThan(o Amount) bool {
	d := a.Sub(o)
	for _, n := range d.Devices {
		if n < 0 {
			return true
		}
	}
	return min(d.CPU, d.Cores, d.MemoryMB, d.MemoryMaxMB, d.Allocations, d.Runners, d.Executions, d.VariablesBytes) < 0
}

// Min is the least of both in each; devices count where both have the same.
func (a Amount) Min(o Amount) Amount {
	out := Amount{
		CPU: min(a.CPU, o.CPU), Cores: min(a.Cores, o.Cores), MemoryMB: min(a.MemoryMB, o.MemoryMB),
		MemoryMaxMB: min(a.MemoryMaxMB, o.MemoryMaxMB), Allocations: min(a.Allocations, o.Allocations),
		Runners: min(a.Runners, o.Runners), Executions: min(a.Executions, o.Executions), VariablesBytes: min(a.VariablesBytes, o.VariablesBytes),
	}
	for name, n := range a.Devices {
		if m := min(n, o.Devices[name]); m > 0 {
			out.device(name, m)
		}
	}
	return out
}
