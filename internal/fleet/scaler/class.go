package scaler

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
)

// class is a demand class under way.
type class struct {
	*fleet.DemandClass
	each     vector
	left     int  // without a place so far
	perBin   int  // at most so many on a machine; 0 = any number
	standby  bool // room to keep, not work
	unit     float64
	placed   int
	awaits   int // has no place, but gets one before a machine could come
	bought   int
	strange  string // why it can't be served at all
	eligible []bool // by offering: machines that would be bought can run it
	meets    []bool // by offering: its constraints are met, whatever machines of it were seen to lack
	stopped  string // what kept us from buying for it
	room     string // what it waits for, which goes
}

// demand collects what needs a place: waiting work, work on machines that the cloud takes back, standby room.
func (p *plan) demand() {
	all := slices.Clone(p.in.Demand)
	for _, n := range p.special {
		i := p.in.Instances[n]
		if !i.InterruptAt.IsZero() && i.InterruptAt.After(p.in.Now) && i.Busy() {
			all = append(all, fleet.DemandClass{Name: "work on " + i.ID, Each: part(i.Used, i.Work), Count: i.Work, Priority: 50, Since: i.StateAt})
		}
	}
	for _, s := range p.in.Policy.Standby {
		all = append(all, fleet.DemandClass{Name: "standby", Each: s.Each, Count: s.Count, Priority: -1})
	}
	for i := range all {
		for name := range all[i].Devices {
			if !slices.Contains(p.devices, name) {
				p.devices = append(p.devices, name)
			}
		}
	}
	slices.Sort(p.devices)
	p.devices = p.devices[:min(len(p.devices), len(vector{})-firstDevice)]
	for i := range all {
		if all[i].Count > 0 {
			p.classes = append(p.classes, p.classOf(&all[i]))
		}
	}
	p.order()
}

// part is a capacity divided by n, rounded down; n below 1 counts as 1.
func part(c drover.Capacity, n int) drover.Capacity {
	k := int64(max(n, 1))
	return drover.Capacity{CPU: c.CPU / k, MemoryMB: c.MemoryMB / k, DiskMB: c.DiskMB / k}
}

// classOf prepares a class of demand for packing: its size as a vector, and whether each machine takes one piece at
// most. A class that asks for too many kinds of devices can never be packed, and one that is held is not served; strange says so.
func (p *plan) classOf(d *fleet.DemandClass) class {
	c := class{DemandClass: d, each: p.sized(d.Each, d.Devices), left: d.Count, standby: d.Priority < 0, strange: d.Held}
	if (d.Each == drover.Capacity{}) {
		c.each[0] = 1 // work without a size still needs a machine
	}
	for name := range d.Devices {
		if !slices.Contains(p.devices, name) {
			c.strange = "too many different devices are asked for at once"
		}
	}
	for _, k := range d.Constraints {
		if k.Operand == "distinct_hosts" && k.RTarget != "false" {
			c.perBin = 1
		}
	}
	return c
}

// order sorts classes: urgent first, then big ones, so that small ones fill what is left.
func (p *plan) order() {
	var biggest vector
	for i := range p.offers {
		v := p.sized(p.offers[i].Capacity, p.offers[i].Devices)
		for d := range v {
			biggest[d] = max(biggest[d], v[d])
		}
	}
	share := func(c *class) (s float64) {
		for d := range c.each {
			if biggest[d] > 0 {
				s = max(s, float64(c.each[d])/float64(biggest[d]))
			}
		}
		return s
	}
	shares := make(map[*fleet.DemandClass]float64, len(p.classes))
	for i := range p.classes {
		shares[p.classes[i].DemandClass] = share(&p.classes[i])
	}
	slices.SortStableFunc(p.classes, func(a, b class) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(shares[b.DemandClass], shares[a.DemandClass]), cmp.Compare(a.Name, b.Name))
	})
}

// fit is how many of n pieces fit into the room, no more than are left.
func (c *class) fit(free *vector, n int) int {
	k := free.fit(&c.each, min(n, c.left))
	if c.perBin > 0 {
		k = min(k, c.perBin)
	}
	return k
}

// whole returns how many pieces an empty machine of the size holds, however many there are.
func (c *class) whole(size *vector) int {
	if c.perBin > 0 {
		return min(size.fit(&c.each, math.MaxInt), c.perBin)
	}
	return size.fit(&c.each, math.MaxInt)
}

// elig says of every offering whether the class may run on it.
func (p *plan) elig(c *class) {
	c.eligible, c.meets = make([]bool, len(p.offers)), make([]bool, len(p.offers))
	for i := range p.offers {
		o := p.offers[i].Offering
		c.meets[i] = c.strange == "" && (!c.OnDemand || o.Market != fleet.MarketSpot) && unmet(o, c.Constraints) == nil
		c.eligible[i] = c.meets[i] && c.Refused(p.in.Policy.Name, p.template, o.Type) == ""
	}
}

// unmet returns the first constraint that machines of the offering do not meet; nil if they meet all.
func unmet(o *fleet.Offering, all []*constraint.Constraint) *constraint.Constraint {
	for _, k := range all {
		if !satisfies(o, k) {
			return k
		}
	}
	return nil
}

// settle is how long the scheduler has to use new room before it counts as unusable.
const settle = 10 * time.Second
