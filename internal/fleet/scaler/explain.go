package scaler

import (
	"fmt"
	"time"

	"drover"
)

// explain says for each class of waiting work what happens to it.
func (p *plan) explain() {
	for i := range p.classes {
		c := &p.classes[i]
		w := Waiting{Class: c.Name, Count: c.Count, Placed: c.placed + c.awaits, Bought: c.bought}
		switch {
		case c.left > 0:
			w.Reason = p.whyNot(c)
		case c.awaits > 0:
			w.Reason = fmt.Sprintf("room for %d is expected sooner than a new machine could come, as other work ends; %d have a place", c.awaits, c.placed)
		case c.bought > 0:
			w.Reason = fmt.Sprintf("machines are bought for %d, %d have a place", c.bought, c.placed)
		default:
			w.Reason = "has a place on machines that are there or starting"
		}
		p.out.Waiting = append(p.out.Waiting, w)
	}
}

func (p *plan) whyNot(c *class) string {
	if c.strange != "" {
		return c.strange
	}
	if c.stopped != "" {
		return fmt.Sprintf("%d of %d wait: %s is reached", c.left, c.Count, c.stopped)
	}
	best, fits, allowed := -1, false, false
	for i := range p.offers {
		o := &p.offers[i]
		if i < len(c.eligible) && !c.eligible[i] {
			continue
		}
		allowed = true
		if o.size.fit(&c.each, 1) == 0 {
			continue
		}
		fits = true
		if best < 0 || o.Price < p.offers[best].Price {
			best = i
		}
	}
	switch {
	case !allowed:
		return "no type that the pool may buy meets the constraints"
	case !fits:
		return fmt.Sprintf("no type that the pool may buy is big enough for %s", sizeText(c.Each))
	}
	return fmt.Sprintf("first of %d, waits for %s: %s", c.left, p.offers[best].Key, p.stoppedBy(best))
}

func (p *plan) stoppedBy(i int) string {
	o := &p.offers[i]
	switch {
	case o.blocked != "" && o.until.IsZero():
		return o.blocked
	case o.blocked != "":
		return fmt.Sprintf("%s, tried again in %s", o.blocked, o.until.Sub(p.in.Now).Round(time.Second))
	case p.units[o.QuotaGroup] < o.QuotaUnits:
		return "the quota of " + o.QuotaGroup + " is reached"
	}
	return "its turn in this pass is over"
}

func sizeText(c drover.Capacity) string {
	return fmt.Sprintf("%d MHz, %d MB of memory, %d MB of disk", c.CPU, c.MemoryMB, c.DiskMB)
}
