package scaler

import (
	"time"

	"github.com/drover-project/drover/fleet"
)

// replace drains what must go although it is good: by an operator's word, taken back by the cloud, expired, or made
// from an older template. The latter two within the policy's share.
func (p *plan) replace() {
	template := p.template
	for _, n := range p.special {
		i := p.in.Instances[n]
		if i.State == fleet.InstanceDraining && (i.Why == WhyIdle || i.Why == WhySurplus) && i.Busy() && i.Behavior == fleet.BehaviorRun {
			p.act(fleet.ActionUndrain, i, WhyDemand, "work was placed on it before its drain was seen")
			continue
		}
		if i.State != fleet.InstanceActive || i.Behavior == fleet.BehaviorHold || p.acted[i.ID] {
			continue
		}
		switch {
		case i.Behavior == fleet.BehaviorDrain:
			p.act(fleet.ActionDrain, i, WhyBehavior, "drained by an operator")
		case !i.InterruptAt.IsZero():
			p.act(fleet.ActionDrain, i, WhyInterrupted, "the cloud takes it back at %s", i.InterruptAt.UTC().Format(time.TimeOnly))
		case p.expired(i) && p.mayMove():
			p.act(fleet.ActionDrain, i, WhyExpired, "older than %s", p.in.Policy.Expire)
		case i.Template != template && i.Template != "" && p.mayMove():
			p.act(fleet.ActionDrain, i, WhyDrift, "made from an older image or user data")
		default:
			if !i.ExpiresAt.IsZero() {
				p.wake(i.ExpiresAt)
			}
		}
	}
}

// mayMove spends one of the machines that may be replaced at once.
func (p *plan) mayMove() bool {
	if p.counts.moving >= max(1, int(p.in.Policy.Disruption*float64(p.counts.live))) {
		return false
	}
	p.counts.moving++
	return true
}

// consolidate drains at most one badly filled machine a pass. Its work must fit into room that is there, what is saved in an
// hour must be worth twice the trouble, and nothing may wait or start.
func (p *plan) consolidate() {
	pol := p.in.Policy
	// trouble is what moving a piece of work costs, in money; gain is how many times that has to be saved in an hour.
	const minAge, trouble, gain = 10 * time.Minute, 0.01, 2.0
	if !pol.Consolidate || len(p.in.Demand) > 0 || p.counts.starting > 0 || p.counts.moving > 0 || p.counts.live <= p.minimum() {
		return
	}
	var best *fleet.Instance
	for _, i := range p.in.Instances {
		if i.State != fleet.InstanceActive || !i.Busy() || !i.Movable || i.Behavior != fleet.BehaviorRun || p.in.Now.Sub(i.ReadyAt) < minAge {
			continue
		}
		if 2*i.Used.CPU > i.Capacity.CPU || 2*i.Used.MemoryMB > i.Capacity.MemoryMB || i.Price <= gain*trouble*float64(i.Work) {
			continue
		}
		if best == nil || i.Price/float64(i.Work) > best.Price/float64(best.Work) {
			best = i
		}
	}
	if best != nil && p.holdsElsewhere(best) && p.mayMove() {
		p.act(fleet.ActionDrain, best, WhyConsolidate, "its work fits on other machines, which saves %s an hour", fleet.Money(best.Price))
	}
}

// holdsElsewhere reports whether one other busy machine has room for all of the machine's work. Idle machines do not
// count, as they would be returned instead.
func (p *plan) holdsElsewhere(i *fleet.Instance) bool {
	for _, o := range p.in.Instances {
		if o != i && o.State == fleet.InstanceActive && o.Busy() && o.Behavior == fleet.BehaviorRun && o.InterruptAt.IsZero() &&
			o.LostAt.IsZero() {
			if ok, _ := i.Used.Fits(o.Free()); ok {
				return true
			}
		}
	}
	return false
}
