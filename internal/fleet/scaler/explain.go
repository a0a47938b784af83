package scaler

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
)

// explain says for each class of waiting work what happens to it.
func (p *plan) explain() {
	for i := range p.classes {
		c := &p.classes[i]
		w := Waiting{Waiting: fleet.Waiting{
			Pool: p.in.Policy.Name, Class: c.Name, Each: c.Each, Count: c.Count, Placed: c.placed + c.awaits, Bought: c.bought,
			Priority: c.Priority, Since: c.Since.UTC(),
		}}
		switch {
		case c.left > 0:
			w.Reason, w.Limit = p.whyNot(c), p.limitOf(c)
		case c.awaits > 0:
			w.Reason = fmt.Sprintf("room for %d is expected sooner than a new machine could come, as other work ends; %d have a place", c.awaits,
				c.placed)
		case c.bought > 0:
			w.Reason = fmt.Sprintf("machines are bought for %d, %d have a place", c.bought, c.placed)
		default:
			w.Reason = "has a place on machines that are there or starting"
		}
		p.out.Waiting = append(p.out.Waiting, w)
	}
}

// limitOf names the limit that stops purchases for the class; "" if it is none, or only for a moment.
func (p *plan) limitOf(c *class) string {
	if c.stopped != "" || c.strange != "" {
		return c.stopped
	}
	for i := range p.offers {
		o := &p.offers[i]
		if i < len(c.eligible) && c.eligible[i] && o.size.fit(&c.each, 1) > 0 && o.blocked == "" && p.units[o.QuotaGroup] < o.QuotaUnits {
			return "the quota of " + o.QuotaGroup
		}
	}
	return ""
}

// whyNot tells why the rest of the class is not bought for. The most specific cause that is known wins.
func (p *plan) whyNot(c *class) string {
	if c.strange != "" {
		return c.strange
	}
	if c.room != "" {
		p.wake(p.in.Now.Add(surplusAgain))
		return fmt.Sprintf("%d of %d: %s", c.left, c.Count, c.room)
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
		return p.whyNone(c)
	case !fits:
		return fmt.Sprintf("no type that the pool may buy is big enough for %s", sizeText(c.Each))
	}
	return fmt.Sprintf("first of %d, waits for %s: %s", c.left, p.offers[best].Key, p.stoppedBy(best))
}

// whyNone says why no type may run the class: what machines lack that were seen, else which constraint is not met.
func (p *plan) whyNone(c *class) string {
	for i := range p.offers {
		if needs := c.Refused(p.in.Policy.Name, p.template, p.offers[i].Type); c.meets[i] && needs != "" {
			return fmt.Sprintf("needs %s, which machines of pool %s do not have", needs, p.in.Policy.Name)
		}
	}
	for i := range p.offers {
		if k := unmet(p.offers[i].Offering, c.Constraints); k != nil {
			return fmt.Sprintf("no type that the pool may buy meets the constraints: %s has not %s", p.offers[i].Type, constraintText(k))
		}
	}
	return "no type that the pool may buy meets the constraints"
}

// constraintText is a constraint as a job file has it, without the parts that are missing.
func constraintText(c *constraint.Constraint) string {
	return strings.Join(strings.Fields(c.LTarget+" "+c.Operand+" "+c.RTarget), " ")
}

// stoppedBy tells why the offer cannot be bought now although the work fits and the policy allows it.
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

// sizeText is a capacity for people, without devices.
func sizeText(c drover.Capacity) string {
	return fmt.Sprintf("%d MHz, %d MB of memory, %d MB of disk", c.CPU, c.MemoryMB, c.DiskMB)
}
