package scaler

import "github.com/drover-project/drover"

// improve searches around the last bins, where greedy packing wastes most. It dissolves a bin into the free room of others,
// merges two into one cheaper machine, and puts a badly filled one onto a cheaper type.
func (p *plan) improve() {
	if len(p.buys) == 0 {
		return
	}
	p.single()
	// Only the last purchases are tried, a few times: the effort must not grow with the size of the fleet.
	const window = 24
	for range 3 {
		changed := false
		from := max(0, len(p.buys)-window)
		for i := len(p.buys) - 1; i >= from; i-- {
			if p.buys[i].count == 1 && (p.dissolve(i, from) || p.downsize(i) || p.merge(i, from)) {
				changed = true
			}
		}
		if !changed {
			return
		}
	}
}

// single takes one machine off each of the last purchases of several, so that it can be improved.
func (p *plan) single() {
	n := len(p.buys)
	for i := max(0, n-12); i < n; i++ {
		b := &p.buys[i]
		if b.count > 1 {
			b.count--
			one := *b
			one.count = 1
			one.take = append([]portion(nil), b.take...)
			p.buys = append(p.buys, one)
		}
	}
}

// load is the sum of what one machine of the purchase will hold.
func (p *plan) load(b *buy) (v vector) {
	for _, t := range b.take {
		v.take(&p.classes[t.class].each, -t.n)
	}
	return v
}

// dissolve moves everything off buy i if it fits into the room of other new machines.
func (p *plan) dissolve(i, from int) bool {
	b := &p.buys[i]
	type move struct{ to, class, n int }
	var moves []move
	frees := map[int]vector{}
	for _, t := range b.take {
		n, c := t.n, &p.classes[t.class]
		for j := from; j < len(p.buys) && n > 0; j++ {
			o := &p.buys[j]
			if j == i || o.count != 1 || !c.eligible[o.offer] || c.perBin > 0 {
				continue
			}
			free, seen := frees[j]
			if !seen {
				free = o.free
			}
			if k := free.fit(&c.each, n); k > 0 {
				free.take(&c.each, k)
				frees[j] = free
				n -= k
				moves = append(moves, move{j, t.class, k})
			}
		}
		if n > 0 {
			return false
		}
	}
	for _, m := range moves {
		o := &p.buys[m.to]
		o.free.take(&p.classes[m.class].each, m.n)
		o.take = addPortion(o.take, m.class, m.n)
	}
	p.cancel(i)
	return true
}

// addPortion adds pieces of a class to a machine's portions, so that each class stands there once.
func addPortion(take []portion, class, n int) []portion {
	for i := range take {
		if take[i].class == class {
			take[i].n += n
			return take
		}
	}
	return append(take, portion{class, n})
}

// cancel takes purchase i, of one machine, out of the plan. Its work must have a place elsewhere by then.
func (p *plan) cancel(i int) {
	p.unbuy(i)
	p.buys = append(p.buys[:i], p.buys[i+1:]...)
}

// unbuy gives back the quota and the limits of one machine of purchase i, which stays in the list.
func (p *plan) unbuy(i int) {
	o := &p.offers[p.buys[i].offer]
	o.bought--
	p.units[o.QuotaGroup] += o.QuotaUnits
	p.limits.add(o.Offering, -1)
}

// downsize puts the load of buy i onto a cheaper offer.
func (p *plan) downsize(i int) bool {
	b := &p.buys[i]
	rest := p.limits
	rest.add(p.offers[b.offer].Offering, -1)
	at := p.cheapestFor(p.load(b), &rest, b.take, nil, p.offers[b.offer].cost*0.999)
	if at < 0 {
		return false
	}
	p.unbuy(i)
	p.rebuy(i, at, b.take)
	return true
}

// merge puts buy i and another onto one machine if that is cheaper.
func (p *plan) merge(i, from int) bool {
	b := &p.buys[i]
	mine := p.load(b)
	for j := from; j < len(p.buys); j++ {
		o := &p.buys[j]
		if j == i || o.count != 1 {
			continue
		}
		both := p.load(o)
		for d := range both {
			both[d] += mine[d]
		}
		rest := p.limits
		rest.add(p.offers[b.offer].Offering, -1)
		rest.add(p.offers[o.offer].Offering, -1)
		at := p.cheapestFor(both, &rest, b.take, o.take, (p.offers[b.offer].cost+p.offers[o.offer].cost)*0.999)
		if at < 0 {
			continue
		}
		take := append([]portion(nil), o.take...)
		for _, t := range b.take {
			take = addPortion(take, t.class, t.n)
		}
		p.unbuy(i)
		p.unbuy(j)
		p.rebuy(j, at, take)
		p.buys = append(p.buys[:i], p.buys[i+1:]...)
		return true
	}
	return false
}

// rebuy makes purchase i one machine of another offer with this load. The caller has given back the old one by unbuy.
func (p *plan) rebuy(i, at int, take []portion) {
	o := &p.offers[at]
	o.bought++
	p.units[o.QuotaGroup] -= o.QuotaUnits
	p.limits.add(o.Offering, 1)
	b := &p.buys[i]
	b.offer, b.take, b.free = at, take, o.size
	for _, t := range take {
		b.free.take(&p.classes[t.class].each, t.n)
	}
}

// cheapestFor returns the cheapest offer below a cost that holds the load, of the portions a and b, and that the policy allows
// beside the rest. It returns -1 if there is none.
func (p *plan) cheapestFor(load vector, rest *limits, a, b []portion, below float64) int {
	best := -1
	for s := range p.shapes {
		sh := &p.shapes[s]
		if !sh.size.holds(&load) {
			continue
		}
		at := p.best(sh, rest, drover.MaxPriority)
		if at < 0 || p.offers[at].cost >= below || !p.allEligible(at, a) || !p.allEligible(at, b) {
			continue
		}
		best, below = at, p.offers[at].cost
	}
	return best
}

// allEligible reports whether the offer suits all the work of the portions. Work that takes a machine for itself is
// never moved.
func (p *plan) allEligible(at int, take []portion) bool {
	for _, t := range take {
		c := &p.classes[t.class]
		if !c.eligible[at] || c.perBin > 0 {
			return false
		}
	}
	return true
}
