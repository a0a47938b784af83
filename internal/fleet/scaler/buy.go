package scaler

import (
	"github.com/drover-project/drover/fleet"
)

// buy is a number of equal new machines and what each of them is for.
type buy struct {
	offer int
	count int
	take  []portion
	free  vector
	why   string
	note  string
}

// buyDemand buys machines for what has no place, urgent work first, by cost per value of the work that fits.
func (p *plan) buyDemand() {
	if !p.anyLeft() {
		return
	}
	p.look()
	for first := 0; first < len(p.classes); {
		priority := p.classes[first].Priority
		last := first
		for last < len(p.classes) && p.classes[last].Priority == priority {
			last++
		}
		p.buyTier(first, last, priority)
		// Only the day's budget was in the way, and it counts less now: the tier is tried once more with new packings.
		if p.makeRoom(first, last, priority) {
			for s := range p.shapes {
				p.shapes[s].packed.valid = false
			}
			p.buyTier(first, last, priority)
		}
		first = last
	}
}

// anyLeft reports whether any work still has no place.
func (p *plan) anyLeft() bool {
	for i := range p.classes {
		if p.classes[i].left > 0 {
			return true
		}
	}
	return false
}

// buyTier buys until nothing of the classes first to last is left, or nothing more can be had for them. An offer that the
// pool's limits have no room for is passed over, as a smaller one may fit.
func (p *plan) buyTier(first, last, priority int) {
	for range 4*(last-first) + 4*len(p.offers) + 16 {
		at := p.choose(first, last, priority)
		if at < 0 {
			p.stop(first, last, priority)
			return
		}
		s := &p.shapes[p.offers[at].shape]
		p.commit(at, p.howMany(at, &s.packed, priority), &s.packed)
	}
}

// choose returns the offer with the least cost per value among those that serve the tier and may be bought for it; -1 if
// there is none.
func (p *plan) choose(first, last, priority int) int {
	best, bestScore := -1, 0.0
	for s := range p.shapes {
		sh := &p.shapes[s]
		at := p.best(sh, &p.limits, priority)
		if at < 0 {
			continue
		}
		if !p.packed(sh) {
			p.pack(sh, at)
		}
		if sh.packed.value == 0 || !serves(&sh.packed, first, last) {
			continue
		}
		score := p.offers[at].cost / sh.packed.value
		if best < 0 || score < bestScore-1e-12 || score < bestScore+1e-12 && p.cheaper(at, best) {
			best, bestScore = at, score
		}
	}
	return best
}

// serves reports whether the packing has room for work of the classes first to last, the upper one excluded. A machine
// that would only hold less urgent work is not bought in an urgent tier.
func serves(k *packing, first, last int) bool {
	for _, t := range k.take {
		if t.class >= first && t.class < last {
			return true
		}
	}
	return false
}

// packed reports whether the shape's packing is still what pack would make: nothing in it ran out.
func (p *plan) packed(s *shape) bool {
	if !s.packed.valid {
		return false
	}
	for _, t := range s.packed.take {
		if p.classes[t.class].left < t.n {
			return false
		}
	}
	return true
}

// pack fills one machine greedily in the classes' order.
func (p *plan) pack(s *shape, at int) {
	k := &s.packed
	k.valid, k.take, k.value, k.free = true, k.take[:0], 0, s.size
	for c := range p.classes {
		cl := &p.classes[c]
		if cl.left == 0 || cl.stopped != "" || !cl.eligible[at] {
			continue
		}
		n := cl.fit(&k.free, cl.left)
		if n == 0 {
			continue
		}
		k.free.take(&cl.each, n)
		k.take = append(k.take, portion{c, n})
		k.value += float64(n) * cl.unit
		if k.free[0] <= 0 || k.free[1] <= 0 {
			return
		}
	}
}

// howMany returns how many machines of the offer, of which one may be bought, are bought with this packing; at least one.
func (p *plan) howMany(at int, k *packing, priority int) int {
	o := &p.offers[at]
	n := p.can(o)
	for _, t := range k.take {
		n = min(n, p.classes[t.class].left/t.n)
	}
	if spread := p.in.Policy.SpotSpread; o.Market == fleet.MarketSpot && spread > 1 && n > 1 {
		n = max(1, (n+spread-1)/spread)
	}
	n, _ = p.allows(o.Offering, n, priority)
	return n
}

// stop says of the classes first to last which limit of the pool kept what is left of them from being bought for; less
// urgent work's machines are not packed with them.
func (p *plan) stop(first, last, priority int) {
	stopped := false
	for k := first; k < last; k++ {
		c := &p.classes[k]
		if c.left == 0 {
			continue
		}
		for i := range p.offers {
			o := &p.offers[i]
			if !c.eligible[i] || p.can(o) == 0 || c.whole(&o.size) == 0 {
				continue
			}
			if _, why := p.allows(o.Offering, 1, priority); why != "" {
				c.stopped, stopped = why, true
				break
			}
		}
	}
	for s := range p.shapes {
		p.shapes[s].packed.valid = p.shapes[s].packed.valid && !stopped
	}
}

// commit plans to buy n machines of the offer with this packing, and takes them off the quota, the pool's limits and
// the work that is left. The packing is copied, as the shape uses its memory again.
func (p *plan) commit(at, n int, k *packing) {
	o := &p.offers[at]
	take := append([]portion(nil), k.take...)
	for _, t := range take {
		p.classes[t.class].left -= t.n * n
		p.classes[t.class].bought += t.n * n
	}
	o.bought += n
	p.units[o.QuotaGroup] -= o.QuotaUnits * int64(n)
	p.limits.add(o.Offering, n)
	why := WhyDemand
	if p.classes[take[0].class].standby {
		why = WhyStandby
	}
	p.buys = append(p.buys, buy{offer: at, count: n, take: take, free: k.free, why: why})
	if o.Market == fleet.MarketSpot && p.in.Policy.SpotSpread > 1 {
		p.spread(at)
	}
}

// spread puts an offer that was just bought behind those of its shape that cost about the same: interruptions come by
// offering.
func (p *plan) spread(at int) {
	s := &p.shapes[p.offers[at].shape]
	limit := p.offers[at].cost * 1.1
	for k := range len(s.offers) - 1 {
		if s.offers[k] == at && p.offers[s.offers[k+1]].cost <= limit {
			s.offers[k], s.offers[k+1] = s.offers[k+1], s.offers[k]
		}
	}
}
