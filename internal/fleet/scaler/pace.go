package scaler

import (
	"math"
	"time"

	"github.com/drover-project/drover"
)

// Pace is how work has lately come and gone on the machines of a pool. Its owner tells it what the agents report and
// what was decided; Decide only reads it. The zero value knows of nothing.
type Pace struct {
	cpu, memoryMB float64 // per second
	at            time.Time
	swings        *Swings
	awaits        int       // pieces that wait for room instead of machines
	awaitsAt      time.Time // since when there are that many
	waited        float64   // in piece-hours, since some wait for room
	run           lasting   // how long a piece of work runs
}

// lasting tells how long work ran in the last half hour: the MHz-seconds that it held over the MHz of what ended.
type lasting struct {
	held, ended float64   // both fade with the time constant learnt
	used        int64     // MHz, since at
	at          time.Time // until when held is counted
}

// pass counts what work held until now, and fades what was counted before.
func (l *lasting) pass(now time.Time) {
	if d := now.Sub(l.at).Seconds(); d > 0 {
		if !l.at.IsZero() {
			fade := math.Exp(-d / learnt.Seconds())
			l.held, l.ended = (l.held+float64(l.used)*d)*fade, l.ended*fade
		}
		l.at = now
	}
}

// paceTime is the time constant of the rates: they follow the work within a minute.
const paceTime = time.Minute

// Freed notes that work of a size left a machine.
func (p *Pace) Freed(now time.Time, c drover.Capacity) {
	fade := p.fade(now)
	p.cpu = p.cpu*fade + float64(max(c.CPU, 0))/paceTime.Seconds()
	p.memoryMB = p.memoryMB*fade + float64(max(c.MemoryMB, 0))/paceTime.Seconds()
	p.at = now
	p.run.pass(now)
	p.run.ended += float64(max(c.CPU, 0))
}

// Decided notes what a decision found: what is needed, and how many pieces of work wait for room.
func (p *Pace) Decided(now time.Time, out *Output) {
	if p.swings == nil {
		p.swings = &Swings{}
	}
	p.swings.Needed(now, out.Need, out.Unit)
	p.run.pass(now)
	p.run.used = out.Used
	p.waited = p.waitedUntil(now)
	if out.Awaits == 0 {
		p.waited = 0
	}
	p.awaits, p.awaitsAt = out.Awaits, now
}

// waitedUntil is how long the pieces waited that are left to wait for room, in piece-hours.
func (p *Pace) waitedUntil(now time.Time) float64 {
	if p.awaits == 0 {
		return 0
	}
	return p.waited + float64(p.awaits)*max(0, now.Sub(p.awaitsAt).Hours())
}

// fade is the weight that what was counted until p.at still has: it falls by a factor of e in each paceTime.
func (p *Pace) fade(now time.Time) float64 {
	return math.Exp(-max(0, now.Sub(p.at).Seconds()) / paceTime.Seconds())
}

// clears returns how long ends of work take to make that much room; ok is false if they are not expected to.
func (p *Pace) clears(now time.Time, cpu, memoryMB float64) (d time.Duration, ok bool) {
	const most = 10 * time.Minute
	k := p.fade(now)
	if p.cpu*k <= 0 || p.memoryMB*k <= 0 {
		return 0, false
	}
	seconds := max(cpu/(p.cpu*k), memoryMB/(p.memoryMB*k))
	if seconds > most.Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// await leaves work alone that may get room because other work ends, as long as its waiting costs less than to buy for
// it: rent or buy. What waits has cost something already, and will until room for it is expected; a machine
// costs its price while it boots and while it is idle in the end. Where that room does not come as expected, what was
// waited grows until it is as much, so the two together cost at most twice what knowing would.
func (p *plan) await() {
	pace := &p.in.Pace
	var pieces, cpu, memory float64
	for i := range p.classes {
		c := &p.classes[i]
		if c.left == 0 || c.standby {
			continue
		}
		if c.strange != "" || c.perBin > 0 || len(c.Constraints) > 0 || len(c.Devices) > 0 {
			return // it can't use just any room
		}
		n := float64(c.left)
		pieces, cpu, memory = pieces+n, cpu+n*float64(c.each[0]), memory+n*float64(c.each[1])
	}
	if pieces == 0 {
		return
	}
	clears, ok := pace.clears(p.in.Now, cpu, memory)
	if !ok {
		return
	}
	rate := p.in.Policy.WaitCost * pieces // per hour
	waiting := p.in.Policy.WaitCost*pace.waitedUntil(p.in.Now) + rate*max(clears, p.relaxes(pieces)).Hours()/2
	buying := p.buying(cpu, memory) * (1 - p.wanted(cpu, memory))
	if waiting >= buying {
		return
	}
	for i := range p.classes {
		if c := &p.classes[i]; c.left > 0 && !c.standby {
			c.awaits, c.left = c.left, 0
			p.out.Awaits += c.awaits
		}
	}
	p.wake(p.in.Now.Add(max(time.Duration((buying-waiting)/rate*float64(time.Hour)), 100*time.Millisecond)))
}

// relaxes is how long chance takes on average to bring as much less work as waits: it is a walk, which gets nowhere for
// long, until what runs now has ended.
func (p *plan) relaxes(pieces float64) time.Duration {
	run := p.runs()
	return time.Duration(float64(run) * min(1, pieces/math.Sqrt(max(1, float64(p.counts.work)))))
}

// wanted is how likely machines for so much are needed before they could come, whatever becomes of what waits.
func (p *plan) wanted(cpu, memory float64) float64 {
	price := math.Inf(1)
	for i := range p.offers {
		o := &p.offers[i]
		price = min(price, o.Price*max(cpu/float64(max(o.Capacity.CPU, 1)), memory/float64(max(o.Capacity.MemoryMB, 1))))
	}
	return p.in.Pace.swings.within(p.need(), p.unitPrice(), price, p.in.Beliefs.BootQuantile("", "", 0.5))
}

// buying is what it costs to buy machines for so much, beside their work: their price while they boot, and while they
// are idle in the end.
func (p *plan) buying(cpu, memory float64) float64 {
	best := math.Inf(1)
	for i := range p.offers {
		o := &p.offers[i]
		n := math.Ceil(max(cpu/float64(max(o.Capacity.CPU, 1)), memory/float64(max(o.Capacity.MemoryMB, 1))))
		boot := p.in.Beliefs.BootQuantile(o.Key, o.Type, 0.5)
		lingers := (harmonic(p.holds(o)) - 1) * p.runs().Hours()
		best = min(best, n*o.Price*((boot+boot/2+moment).Hours()+lingers))
	}
	return best
}

// harmonic is the nth harmonic number, about: the longest of n pieces of work runs so many times as long as one.
func harmonic(n float64) float64 {
	return math.Log(max(n, 1)) + 0.5772*(1-1/max(n, 1)) + 1/max(n, 1)*1
}
