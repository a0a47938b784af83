package scaler

import (
	"math"
	"time"

	"drover"
)

// Pace is how work has lately come and gone on the machines of a pool. Its owner tells it what the agents report and
// what was decided; Decide only reads it. The zero value knows of nothing.
type Pace struct {
	cpu, memoryMB float64 // per second
	at            time.Time
	busy          float64 // machines with work, smoothed
	busyAt        time.Time
	since         time.Time // since when work waits for room instead of machines; zero if none does
}

// paceTime is the time constant of the rates: they follow the work within a minute.
const paceTime = time.Minute

// Freed notes that work of a size left a machine.
func (p *Pace) Freed(now time.Time, c drover.Capacity) {
	fade := p.fade(now)
	p.cpu = p.cpu*fade + float64(max(c.CPU, 0))/paceTime.Seconds()
	p.memoryMB = p.memoryMB*fade + float64(max(c.MemoryMB, 0))/paceTime.Seconds()
	p.at = now
}

// Waits notes whether the last decision let work wait for room.
func (p *Pace) Waits(now time.Time, waits bool) {
	switch {
	case !waits:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = now
	}
}

// Busy notes how many machines have work.
func (p *Pace) Busy(now time.Time, n int) {
	if p.busyAt.IsZero() {
		p.busy = float64(n)
	} else {
		p.busy += (float64(n) - p.busy) * (1 - math.Exp(-now.Sub(p.busyAt).Seconds()/busyTime.Seconds()))
	}
	p.busyAt = now
}

// busyTime is the time constant of Busy.
const busyTime = 10 * time.Minute

func (p *Pace) fade(now time.Time) float64 {
	return math.Exp(-max(0, now.Sub(p.at).Seconds()) / paceTime.Seconds())
}

// within returns the room that ends of work are expected to make in a time; half of it is not counted on, as it comes in
// pieces, and other work may take it.
func (p *Pace) within(now time.Time, d time.Duration) vector {
	k := p.fade(now) * d.Seconds() / 2
	return vector{int64(p.cpu * k), int64(p.memoryMB * k), math.MaxInt64 / 4}
}

// await leaves work alone that gets room before a new machine could take it, because other work ends: a machine that
// comes too late costs and helps nobody. Only for a quarter of the time that a machine boots: what lacks longer is no
// swing, and then it is bought.
func (p *plan) await() {
	pace := &p.in.Pace
	horizon := p.in.Beliefs.BootQuantile("", "", 0.5)
	until := p.in.Now.Add(horizon / 4)
	if !pace.since.IsZero() {
		until = pace.since.Add(horizon / 4)
	}
	if pace.cpu == 0 || !p.in.Now.Before(until) {
		return
	}
	room := pace.within(p.in.Now, horizon)
	for i := range p.classes {
		c := &p.classes[i]
		if c.left == 0 || c.standby {
			continue
		}
		if c.strange != "" || c.perBin > 0 || len(c.Constraints) > 0 || len(c.Devices) > 0 || room.fit(&c.each, c.left) < c.left {
			return
		}
		room.take(&c.each, c.left)
	}
	for i := range p.classes {
		if c := &p.classes[i]; c.left > 0 && !c.standby {
			c.awaits, c.left = c.left, 0
			p.out.Awaits += c.awaits
		}
	}
	if p.out.Awaits > 0 {
		p.wake(until)
	}
}
