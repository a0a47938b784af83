package scaler

import (
	"math"
	"slices"
	"time"

	"drover"
)

// Damping: work that comes and goes by chance swings by about the root of its amount. Machines that such a swing leaves
// idle are needed again soon, so some are held; those that a real fall of the demand leaves idle are far more, and are
// returned. The numbers were found in the simulator: on its daily load they cost 8 % and save nearly all re-creates.
const (
	dampWidth = 3.0       // standard deviations of a swing, in machines
	dampShare = 0.5       // of the busy machines, at most: small fleets swing more than that
	dampHold  = time.Hour // of idling, at most
)

// reserve is the price per hour of idle machines that are held although they would be returned.
func (p *plan) reserve() float64 {
	if p.in.Policy.Idle != 0 || p.in.Policy.Retiring || p.counts.busy == 0 {
		return 0 // somebody said how long, or nothing swings
	}
	n := float64(p.counts.busy)
	return min(dampShare*n, dampWidth*math.Sqrt(n)) * p.counts.busyCost / n
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
