package simulator

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Bound is what anybody has to pay at least, a clairvoyant too, who may let work wait: nothing boots, nothing is idle, and
// machines come in fractions. Each way of dividing a machine's price between its cpu and its memory gives a bound, as what fits
// on a machine never takes more than all of either. The best of eleven ways is taken. For work of one shape that is its share
// of the best machine. Billing by the hour and limits of quotas are left out: they cost more.
func (w Workload) Bound(offerings []fleet.Offering) (cost float64) {
	hours := map[drover.Capacity]float64{}
	var sizes []drover.Capacity // in order: sums of floats depend on it
	for i := range w {
		if _, known := hours[w[i].Each]; !known {
			sizes = append(sizes, w[i].Each)
		}
		hours[w[i].Each] += w[i].Run.Hours()
	}
	for k := range 11 {
		sum := 0.0
		for _, size := range sizes {
			sum += hours[size] * unit(size, offerings, float64(k)/10)
		}
		cost = max(cost, sum)
	}
	return cost
}

// unit is the least price per hour of work of a size, if a share of each machine's price is that of its cpu.
func unit(size drover.Capacity, offerings []fleet.Offering, cpu float64) float64 {
	u := math.Inf(1)
	for k := range offerings {
		o := &offerings[k]
		a, b := float64(size.CPU)/float64(o.Capacity.CPU), float64(size.MemoryMB)/float64(o.Capacity.MemoryMB)
		if a <= 1 && b <= 1 {
			u = min(u, o.Price*(cpu*a+(1-cpu)*b))
		}
	}
	return u
}

// Calm is what a clairvoyant pays at least, relative to Bound, who lets no work wait and buys no machine back within ten
// minutes. It keeps each one over shorter gaps, and else over those in which it costs less than to boot. It tells whether few
// re-creates and low cost contradict each other on a load as such, or only for those who can't see ahead. Machines are of one
// size, and packed without loss.
func (w Workload) Calm(machine drover.Capacity, boot time.Duration) float64 {
	type change struct {
		at   time.Duration
		size float64
	}
	changes := make([]change, 0, 2*len(w))
	for i := range w {
		size := max(float64(w[i].Each.CPU)/float64(machine.CPU), float64(w[i].Each.MemoryMB)/float64(machine.MemoryMB))
		changes = append(changes, change{w[i].At, size}, change{w[i].At + w[i].Run, -size})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.size, b.size)) })
	var busy, kept, level float64
	var last time.Duration
	var idle []time.Duration // since when the nth machine is; those below the level are busy
	for _, c := range changes {
		busy += level * (c.at - last).Hours()
		last = c.at
		was := int(math.Ceil(level - 1e-9))
		level += c.size
		is := int(math.Ceil(level - 1e-9))
		for n := was; n < is; n++ {
			switch {
			case n == len(idle):
				idle = append(idle, 0)
				kept += boot.Hours()
			case c.at-idle[n] <= 10*time.Minute:
				kept += (c.at - idle[n]).Hours()
			default:
				kept += min(c.at-idle[n], boot).Hours()
			}
		}
		for n := is; n < was; n++ {
			idle[n] = c.at
		}
	}
	return (busy + kept) / busy
}
