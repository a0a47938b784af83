package scaler

import (
	"fmt"
	"math"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// minimum is the policy's smallest size of the pool: what it says for now, or for when a machine bought now would be there.
// So a schedule's machines are up when their time begins.
func (p *plan) minimum() int {
	pol := p.in.Policy
	if len(pol.Schedule) == 0 || len(p.in.Offerings) == 0 {
		return pol.MinAt(p.in.Now)
	}
	ahead := time.Duration(math.MaxInt64)
	for i := range p.in.Offerings {
		o := &p.in.Offerings[i]
		ahead = min(ahead, p.in.Beliefs.BootQuantile(o.Key, o.Type, 0.95))
	}
	return max(pol.MinAt(p.in.Now), pol.MinAt(p.in.Now.Add(ahead)))
}

// buyMinimum buys up to the policy's smallest size of the pool at this time.
func (p *plan) buyMinimum() {
	want := p.minimum()
	if len(p.in.Policy.Schedule) > 0 {
		p.wake(p.in.Now.Truncate(time.Minute).Add(time.Minute))
	}
	missing := want - p.counts.live
	for _, b := range p.buys {
		missing -= b.count
	}
	if missing <= 0 {
		return
	}
	if p.shapes == nil {
		p.look()
	}
	for missing > 0 {
		at := p.cheapest(nil, nil)
		if at < 0 {
			p.out.Lacks = p.lacks(missing, want)
			return
		}
		n, _ := p.allows(p.offers[at].Offering, min(missing, p.can(&p.offers[at])), drover.MaxPriority)
		p.plain(at, n, WhyMinimum, fmt.Sprintf("the pool keeps at least %d machines", want))
		missing -= n
	}
}

// lacks tells why nothing can be bought for the minimum, and has the decision made again when what was blocked is tried again:
// no work waits, which would see to that.
func (p *plan) lacks(missing, want int) string {
	best := -1
	for i := range p.offers {
		o := &p.offers[i]
		if o.blocked != "" && o.until.After(p.in.Now) {
			p.wake(o.until)
		}
		if best < 0 || o.Price < p.offers[best].Price {
			best = i
		}
	}
	if best < 0 || p.in.Policy.PauseCreates {
		return ""
	}
	o, why := &p.offers[best], p.stoppedBy(best)
	switch {
	case p.can(o) > 0:
		why = "the pool's limits have no room for one"
	case o.blocked == "" && p.units[o.QuotaGroup] >= o.QuotaUnits:
		return "" // they come in the next passes
	}
	return fmt.Sprintf("%d of the %d machines that are kept at least are missing: %s: %s", missing, want, o.Key, why)
}

// plain buys machines for nothing in particular.
func (p *plan) plain(at, n int, why, note string) {
	o := &p.offers[at]
	o.bought += n
	p.units[o.QuotaGroup] -= o.QuotaUnits * int64(n)
	p.limits.add(o.Offering, n)
	p.buys = append(p.buys, buy{offer: at, count: n, free: o.size, why: why, note: note})
}

// cheapest returns the index of the cheapest offer that can be bought and that the pool's limits have room for; or -1. It is at
// least as big as least (nil: any size), and in another zone or of another type than not (nil: any).
func (p *plan) cheapest(least *vector, not *fleet.Instance) int {
	best := -1
	for i := range p.offers {
		o := &p.offers[i]
		if p.can(o) == 0 || least != nil && !o.size.holds(least) || not != nil && o.Zone == not.Zone && o.Type == not.Type {
			continue
		}
		if best >= 0 && !p.cheaper(i, best) {
			continue
		}
		if n, _ := p.allows(o.Offering, 1, drover.MaxPriority); n > 0 {
			best = i
		}
	}
	return best
}

// hedge buys a machine beside each that is slow to come up while work waits for it: at most a twentieth of those that
// are starting.
func (p *plan) hedge() {
	if p.counts.starting == 0 || p.onStart == 0 {
		return
	}
	room := max(1, p.counts.starting/20) - p.counts.hedges
	for _, n := range p.special {
		i := p.in.Instances[n]
		if !i.State.Starting() || i.Hedge || !p.kept[n] || i.State == fleet.InstancePlanned {
			continue
		}
		slow := i.PlannedAt.Add(p.in.Beliefs.BootQuantile(i.Offering, i.Type, 0.95))
		if p.in.Now.Before(slow) {
			p.wake(slow)
			continue
		}
		if room <= 0 {
			continue
		}
		if p.shapes == nil {
			p.look()
		}
		size := vectorOf(i.Capacity)
		at := p.cheapest(&size, i)
		if at < 0 {
			continue
		}
		room--
		p.plain(at, 1, WhyHedge, fmt.Sprintf("%s is slower to start than 19 of 20, and work waits for it", i.ID))
	}
}
