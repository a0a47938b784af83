package scaler

import (
	"time"

	"github.com/drover-project/drover/fleet"
)

// offer is an offering under consideration.
type offer struct {
	*fleet.Offering
	blocked string // why none can be bought now
	until   time.Time
	cost    float64 // expected, of one machine
	cap     int     // at most so many in this pass; -1 = any number
	bought  int
	shape   int
	size    vector
}

// shape is a set of offerings that hold the same work; of those that can be bought the cheapest stands for it.
type shape struct {
	offers []int // cheapest first
	size   vector
	packed packing
}

// packing is what would be put on one new machine.
type packing struct {
	valid bool
	take  []portion
	value float64
	free  vector
}

// portion is n pieces of a class, on one machine.
type portion struct{ class, n int }

// expect is how long a bought machine is assumed to work, for want of better knowledge.
const expect = 30 * time.Minute

// unfilled is the share of a machine's room that stays empty once work on it ended. On the simulator's loads whose work runs
// for ten minutes, 4 to 11 % of busy machines are empty (seeds 1 to 5, 2026-11-23).
const unfilled = 0.1

// look finds out what can be bought now, and what a machine of each offering is expected to cost.
func (p *plan) look() {
	b := p.in.Beliefs
	template, run := p.template, p.runs()
	if run > expect {
		run = 0 // the ends of such long work do not decide how long a machine is there
	}
	for i := range p.offers {
		o := &p.offers[i]
		o.size = p.sized(o.Capacity, o.Devices)
		o.blocked, o.until = b.Blocked(p.in.Now, o.Offering, template)
		o.cap = -1
		if b.Probing(o.Offering, template) {
			o.cap = 4
		}
		boot := b.BootQuantile(o.Key, o.Type, 0.5)
		holds := p.holds(o)
		// The more pieces a machine holds, the later the last of them ends.
		lingers := time.Duration(unfilled * (harmonic(holds) - 1) * float64(run))
		paid := o.Billing.Charged(expect + boot + lingers).Hours()
		redo := b.Interruptions(o.Offering) * expect.Hours() * (o.Price*expect.Hours()/2 + p.in.Policy.WaitCost*holds*boot.Hours())
		o.cost = o.Price*paid + redo
		if p.in.Policy.PauseCreates {
			o.blocked = "creates are paused"
		}
		if o.until.After(p.in.Now) && o.blocked != "" {
			p.wakeBlocked(o.until)
		}
	}
	p.quotas()
	p.group()
	p.unitCosts()
}

// holds is how many pieces of the work that waits a machine has room for, on average.
func (p *plan) holds(o *offer) float64 {
	var cpu, memory, n float64
	for i := range p.classes {
		if c := &p.classes[i]; c.left > 0 {
			k := float64(c.left)
			cpu, memory, n = cpu+k*float64(c.each[0]), memory+k*float64(c.each[1]), n+k
		}
	}
	if n == 0 {
		return 1
	}
	return max(1, min(float64(o.Capacity.CPU)*n/max(cpu, 1), float64(o.Capacity.MemoryMB)*n/max(memory, 1)))
}

// wakeBlocked asks to decide again at t if work is left by then: a blocked offer matters to nobody else.
func (p *plan) wakeBlocked(t time.Time) {
	for i := range p.classes {
		if p.classes[i].left > 0 {
			p.wake(t)
			return
		}
	}
}

// quotas copies what is left of each group, in machines' units.
func (p *plan) quotas() {
	for i := range p.offers {
		o := &p.offers[i]
		if _, done := p.units[o.QuotaGroup]; done {
			continue
		}
		room := p.in.Beliefs.Room(p.in.Now, o.QuotaGroup, p.in.GroupUsed[o.QuotaGroup])
		p.over[o.QuotaGroup] = room.Over
		if room.Again.After(p.in.Now) {
			p.wakeBlocked(room.Again)
		}
		if room.Probe {
			room.Units = o.QuotaUnits // of one machine
		}
		p.units[o.QuotaGroup] = room.Units
	}
}

// can returns how many machines of the offer may be bought in this pass, without the policy's limits.
func (p *plan) can(o *offer) int {
	if o.blocked != "" {
		return 0
	}
	n := int(min(p.units[o.QuotaGroup]/o.QuotaUnits, 1<<30))
	if o.cap >= 0 {
		n = min(n, o.cap-o.bought)
	}
	return max(n, 0)
}

type shapeKey struct {
	size vector
	fits string
}

// group finds offerings that hold the same work, so that each kind is packed once.
func (p *plan) group() {
	index := map[shapeKey]int{}
	p.shapes = p.shapes[:0]
	constrained := false
	for i := range p.classes {
		c := &p.classes[i]
		constrained = constrained || len(c.Constraints) > 0 || c.OnDemand
	}
	bits := make([]byte, len(p.classes))
	for i := range p.offers {
		o := &p.offers[i]
		key := shapeKey{size: o.size}
		if constrained {
			for c := range p.classes {
				bits[c] = 0
				if p.classes[c].eligible[i] {
					bits[c] = 1
				}
			}
			key.fits = string(bits)
		}
		at, known := index[key]
		if !known {
			at = len(p.shapes)
			index[key] = at
			p.shapes = append(p.shapes, shape{size: o.size})
		}
		o.shape = at
		s := &p.shapes[at]
		s.offers = append(s.offers, i)
		for k := len(s.offers) - 1; k > 0 && p.cheaper(s.offers[k], s.offers[k-1]); k-- {
			s.offers[k], s.offers[k-1] = s.offers[k-1], s.offers[k]
		}
	}
}

// cheaper orders offers by cost; among equals chance decides, so that zones are used evenly.
func (p *plan) cheaper(a, b int) bool {
	x, y := &p.offers[a], &p.offers[b]
	if x.cost != y.cost {
		return x.cost < y.cost
	}
	return p.in.Beliefs.Chance(x.Key) < p.in.Beliefs.Chance(y.Key)
}

// unitCosts finds what one piece of each class costs at the best, alone on machines: the value of placing it.
func (p *plan) unitCosts() {
	for c := range p.classes {
		cl := &p.classes[c]
		cl.unit = 0
		if cl.left == 0 {
			continue
		}
		for s := range p.shapes {
			o := p.best(&p.shapes[s], nil, cl.Priority)
			if o < 0 || !cl.eligible[o] {
				continue
			}
			if n := cl.whole(&p.shapes[s].size); n > 0 {
				if u := p.offers[o].cost / float64(n); cl.unit == 0 || u < cl.unit {
					cl.unit = u
				}
			}
		}
	}
}

// best returns the shape's cheapest offer that can be bought; or -1. The policy must allow one more of it for the priority,
// beyond what l says is taken (nil: whatever the policy allows).
func (p *plan) best(s *shape, l *limits, priority int) int {
	for _, i := range s.offers {
		o := &p.offers[i]
		if p.can(o) == 0 {
			continue
		}
		if l != nil {
			if n, _ := p.allowed(l, o.Offering, 1, priority); n == 0 {
				continue
			}
		}
		return i
	}
	return -1
}
