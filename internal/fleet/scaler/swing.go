package scaler

import (
	"math"
	"time"
)

// Swings is how far the need for machines rises within a time, as seen from each moment of the last hours. It says how likely
// an idle machine is needed again, and how soon. Needs are prices per hour; rises are counted in roots of the need times the
// price of a typical machine, as that is how independent work swings: so nights tell about days. Rises after the need fell,
// while it is steady, and after it rose are told apart: bursts end otherwise than they begin.
type Swings struct {
	began  int64             // the first tick; 0 = none was seen
	last   int64             // the last complete one
	need   float64           // since then
	mean   float64           // of the need, over some minutes
	recent [ringSize]float64 // needs at the last ticks
	trends [ringSize]trend   // and what they were then
	rises  [trends][len(horizons)]dist
	all    [len(horizons)]dist // whatever the trend
}

// trend is how the need is to its mean of some minutes.
type trend uint8

const (
	steady trend = iota
	fell
	rose
	trends
)

// meanTime is the time constant of that mean.
const meanTime = 5 * time.Minute

// beat is how often the need is looked at.
const beat = 10 * time.Second

// horizons are within which rises are counted, in ticks: half a minute to half an hour.
var horizons = [...]int64{1, 3, 6, 12, 24, 48, 96, 192}

const (
	ringSize = 193
	steps    = 20
	// memory is how long what was seen counts: a few hours, as what a day is like changes in the course of it.
	memory = 3 * time.Hour
	// presumed is for how long what we presume counts beside what was seen.
	presumed = 5 * time.Minute
)

// dist counts rises: atLeast[k] are those of at least rungs[k].
type dist struct {
	total   float64
	atLeast [steps]float64
}

// rungs are the sizes of rises that are told apart: a fifth of a swing and up, each by the root of two.
var rungs = func() (r [steps]float64) {
	for k := range r {
		r[k] = 0.2 * math.Exp2(float64(k)/2)
	}
	return r
}()

// Needed notes what machines are needed now, and the price of a typical one.
func (s *Swings) Needed(now time.Time, need, unit float64) {
	tick := now.Unix() / int64(beat/time.Second)
	if s.began == 0 || tick-s.last > 10*ringSize {
		*s = Swings{began: tick, last: tick, need: need, mean: need, rises: s.rises, all: s.all}
		s.recent[tick%ringSize] = need
		return
	}
	for s.last < tick {
		s.last++
		s.mean += (s.need - s.mean) * beat.Seconds() / meanTime.Seconds()
		s.recent[s.last%ringSize], s.trends[s.last%ringSize] = s.need, s.trend(s.need, unit)
		s.count(unit)
	}
	s.need = need
}

// trend is how a need is to the mean: by more than half a swing.
func (s *Swings) trend(need, unit float64) trend {
	if s == nil {
		return steady
	}
	switch d := (need - s.mean) / swing(s.mean, unit); {
	case d > 0.5:
		return rose
	case d < -0.5:
		return fell
	}
	return steady
}

// count adds the rises that ended with the last tick.
func (s *Swings) count(unit float64) {
	for h, ticks := range horizons {
		from := s.last - ticks
		if from < s.began {
			return
		}
		base := s.recent[from%ringSize]
		top := base
		for k := from + 1; k <= s.last; k++ {
			top = max(top, s.recent[k%ringSize])
		}
		rise := (top - base) / swing(base, unit)
		s.all[h].add(rise)
		s.rises[s.trends[from%ringSize]][h].add(rise)
	}
}

// swing is the unit in which rises from a need are counted.
func swing(need, unit float64) float64 {
	if unit <= 0 {
		unit = 1
	}
	return math.Sqrt(max(need, unit) * unit)
}

// add counts a rise of the demand. Older rises lose weight, so that the distribution follows the last hours.
func (d *dist) add(rise float64) {
	keep := 1 - beat.Seconds()/memory.Seconds()
	d.total = d.total*keep + 1
	for k := range d.atLeast {
		d.atLeast[k] *= keep
		if rise >= rungs[k] {
			d.atLeast[k]++
		}
	}
}

// chance is the share of rises of at least so much; what is presumed counts as much as some minutes of seeing it.
func (d *dist) chance(rise, presume, prior float64) float64 {
	return (d.seen(rise) + prior*presume) / max(d.total+prior, 1e-9)
}

// seen is how often, with weights, the demand rose by at least this much; between two rungs it is interpolated.
func (d *dist) seen(rise float64) float64 {
	at := 2 * math.Log2(max(rise, 1e-9)/rungs[0])
	if at <= 0 {
		return d.atLeast[0]
	}
	k := int(at)
	if k >= steps-1 {
		return d.atLeast[steps-1]
	}
	share := at - float64(k)
	return d.atLeast[k]*(1-share) + d.atLeast[k+1]*share
}

// presume is what we presume before anything was seen: a walk by chance whose steps are those of work that runs for ten
// minutes.
func presume(rise float64, within time.Duration) float64 {
	const run = 10.0
	sigma := math.Sqrt(2 * (1 - math.Exp(-within.Minutes()/run)))
	return math.Erfc(rise / sigma / math.Sqrt2)
}

// Outlook is how likely something is needed within a time, at the time at which that speaks most for keeping it.
type Outlook struct {
	Within time.Duration
	Chance float64
	Rate   float64 // the chance over the mean time until then or until it is needed, per second
}

// chance is how likely the need rises by so much, in swings, within a horizon, as the trend is now. It counts what was seen
// with this trend, what was seen whatever the trend, and what is presumed as far as nothing is known yet.
func (s *Swings) chance(now trend, rise float64, h int) float64 {
	const weight = float64(presumed / beat)
	c := presume(rise, time.Duration(horizons[h])*beat)
	if s == nil {
		return c
	}
	c = s.all[h].chance(rise, c, weight*max(0.1, 1-s.known()))
	return s.rises[now][h].chance(rise, c, weight)
}

// outlook tells about a rise from a need, by a price.
func (s *Swings) outlook(need, unit, by float64) (best Outlook) {
	rise, now := by/swing(need, unit), s.trend(need, unit)
	chance, mean, last := 0.0, 0.0, time.Duration(0)
	for h, ticks := range horizons {
		within := time.Duration(ticks) * beat
		c := max(chance, s.chance(now, rise, h))
		mean += (within - last).Seconds() * (1 - (c+chance)/2)
		if r := c / max(mean, 1); r > best.Rate {
			best = Outlook{within, c, r}
		}
		chance, last = c, within
	}
	return best
}

// within is how likely the need rises by a price within a time.
func (s *Swings) within(need, unit, by float64, d time.Duration) float64 {
	h := 0
	for h < len(horizons)-1 && time.Duration(horizons[h])*beat < d {
		h++
	}
	return s.chance(s.trend(need, unit), by/swing(need, unit), h)
}

// known says how sure what was seen makes us, 0 to 1.
func (s *Swings) known() float64 {
	if s == nil || s.began == 0 {
		return 0
	}
	return min(1, float64(s.last-s.began)*beat.Seconds()/learnt.Seconds())
}

// learnt is after how long of watching nothing is presumed any more.
const learnt = 30 * time.Minute
