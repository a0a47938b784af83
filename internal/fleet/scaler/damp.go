package scaler

import (
	"math"
	"slices"
	"time"

	"drover"
)

// Damping: work that comes and goes by chance swings by about the root of its amount. Machines that such a swing leaves
// idle are needed again soon, so some are held; those that a real fall of the demand leaves idle are far more, and are
// returned. While the demand is below its mean of some minutes, more are held, as it will come back; if it is far below,
// that is a fall, and nothing more is held for it. The numbers were found in the simulator: on its daily loads they cost
// 13 % and keep re-creates below 1 % with each of twenty seeds, and no cheaper rule of this form does.
const (
	dampWidth = 2.7           // of a swing, in roots of the number of busy machines
	dampDip   = 2.5           // how far below its mean the demand swings, in the same unit
	dampBack  = 0.8           // of such a dip, how much comes back
	dampHold  = 2 * time.Hour // of idling, at most
)

// reserve is the price per hour of idle machines that are held although they would be returned: in small fleets half as many
// as there are busy ones, as each counts.
func (p *plan) reserve() float64 {
	if p.in.Policy.Idle != 0 || p.in.Policy.Retiring || p.counts.busy == 0 {
		return 0 // somebody said how long, or nothing swings
	}
	n := float64(p.counts.busy)
	dip := max(0, p.in.Pace.busy-n) / math.Sqrt(n)
	dip = max(0, min(dip, 2*dampDip-dip))
	return min(max(n/2, n-2), (dampWidth+dampBack*dip)*math.Sqrt(n)) * p.counts.busyCost / n
}

// hold takes machines that are to be held off the end of the list of idle ones, which go last.
func (p *plan) hold(idle []*drover.Instance, template string, reserve float64) []*drover.Instance {
	gone := idle[:0:0]
	for k := len(idle) - 1; k >= 0; k-- {
		i := idle[k]
		until := i.IdleAt.Add(dampHold)
		if reserve < i.Price || rank(i, template) > 0 || i.Billing.Granularity >= coarse || !p.in.Now.Before(until) {
			gone = append(gone, i)
			continue
		}
		reserve -= i.Price
		p.wake(until.Truncate(tick).Add(tick))
	}
	slices.Reverse(gone)
	return gone
}
