package scaler

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// destroyFinished returns machines that are drained and confirmed quiet.
func (p *plan) destroyFinished() {
	for _, n := range p.special {
		i := p.in.Instances[n]
		switch {
		case i.Busy() || i.Behavior == fleet.BehaviorHold:
		case i.State == fleet.InstanceDraining && i.Quiet:
			p.destroy(i, WhyDrained, "drained: %s", i.Reason)
		case i.State == fleet.InstanceOrphaned:
			at := i.StateAt.Add(p.in.Policy.OrphanGrace)
			if p.in.Now.Before(at) {
				p.wake(at)
				continue
			}
			p.destroy(i, WhyOrphan, "nobody knows what it is for, since %s", p.in.Policy.OrphanGrace)
		}
	}
}

// destroy spends a token; without one it is decided again later.
func (p *plan) destroy(i *fleet.Instance, why, format string, args ...any) {
	if p.destroys <= 0 {
		p.wake(p.in.Beliefs.TokensAt(p.in.Now, provider.CallDestroy, p.spent))
		return
	}
	p.destroys--
	p.spent++
	p.act(fleet.ActionDestroy, i, why, format, args...)
}

// destroyHopeless gives up machines that do not come up, or whose agent is silent and which control took the work of.
func (p *plan) destroyHopeless() {
	sick := p.counts.lost*5 > p.counts.live && p.counts.lost >= 3
	for _, n := range p.special {
		i := p.in.Instances[n]
		if i.Busy() || i.Behavior == fleet.BehaviorHold {
			continue
		}
		switch {
		case made(i):
			at := p.bootEnds(i)
			if p.in.Now.Before(at) {
				p.wake(at)
				continue
			}
			p.destroy(i, WhyBoot, "took no work %s after it was asked for", at.Sub(p.bootFrom(i)))
		case i.State == fleet.InstanceActive && !i.LostAt.IsZero():
			at := i.LostAt.Add(p.in.Policy.LostTimeout)
			if p.in.Now.Before(at) {
				p.wake(at)
			} else if !sick { // if many are silent, it is us, or the network
				p.destroy(i, WhyLost, "its agent is silent since %s", i.LostAt.UTC().Format(time.RFC3339))
			}
		}
	}
}

// made reports that the cloud has the machine, which has not come up yet.
func made(i *fleet.Instance) bool {
	return i.State == fleet.InstanceBooting || i.State == fleet.InstanceRegistered || i.State == fleet.InstanceCreating && i.ProviderID != ""
}

// givenUp reports that the machine goes because it did not come up: no work may count on it. One that may not even have
// been made counts, so that a cloud which does not answer is not asked for ever more.
func (p *plan) givenUp(i *fleet.Instance) bool {
	return made(i) && p.in.Settled && !p.in.Policy.PauseDestroys && !p.in.Now.Before(p.bootEnds(i))
}

// bootEnds is when the machine is given up if it has not come up.
func (p *plan) bootEnds(i *fleet.Instance) time.Time {
	return p.bootFrom(i).Add(p.in.Beliefs.BootDeadline(i.Offering, i.Type, p.in.Policy.BootTimeout))
}

// bootFrom is when the machine began to start, as far as known: adopted ones get the whole time again.
func (p *plan) bootFrom(i *fleet.Instance) time.Time {
	if i.Adopted {
		return i.StateAt
	}
	return i.PlannedAt
}

// retireIdle drains idle machines: those that were idle for as long as the policy says, else those that are not worth
// keeping; where hours are paid, at the end of one.
func (p *plan) retireIdle() {
	spare := p.counts.live - p.minimum()
	var idle, gone []*fleet.Instance
	for _, n := range p.special {
		i := p.in.Instances[n]
		if i.State != fleet.InstanceActive || i.Busy() || i.IdleAt.IsZero() || i.Behavior != fleet.BehaviorRun || !i.LostAt.IsZero() ||
			p.kept[n] || p.acted[i.ID] {
			continue
		}
		if p.in.Policy.Idle == 0 && i.Billing.Granularity < coarse && !p.in.Policy.Retiring {
			idle = append(idle, i)
			continue
		}
		if at := p.idleUntil(i); p.in.Now.Before(at) {
			p.wake(at.Truncate(tick).Add(tick)) // many at once
			continue
		}
		gone = append(gone, i)
	}
	gone = append(gone, p.keep(idle)...)
	template := p.template
	slices.SortStableFunc(gone, func(a, b *fleet.Instance) int {
		return cmp.Or(-cmp.Compare(rank(a, template), rank(b, template)), -cmp.Compare(a.Price, b.Price), a.IdleAt.Compare(b.IdleAt))
	})
	for _, i := range gone {
		if spare <= 0 {
			return
		}
		if at := i.CreatedAt.Add(i.Billing.Minimum); p.in.Now.Before(at) && i.Billing.Granularity < coarse { // is paid anyway
			p.wake(at)
			continue
		}
		spare--
		p.act(fleet.ActionDrain, i, WhyIdle, "idle since %s", i.IdleAt.UTC().Format(time.TimeOnly))
	}
}

// coarse is from which granularity on billing decides when an idle machine goes.
const coarse = 10 * time.Minute

// tick is how exactly idle machines are watched.
const tick = 2 * time.Second

// rank says which idle machines go first: those that would be replaced anyway.
func rank(i *fleet.Instance, template string) int {
	n := 0
	if i.Template != template {
		n++
	}
	if !i.ExpiresAt.IsZero() {
		n++
	}
	return n
}

// idleUntil is when an idle machine is returned by time alone: after the policy's time, or, where hours are paid, at
// the end of one.
func (p *plan) idleUntil(i *fleet.Instance) time.Time {
	limit := p.in.Policy.Idle
	if limit == 0 {
		limit = settle
	}
	at := i.IdleAt.Add(limit)
	if i.Billing.Granularity < coarse {
		return at
	}
	const margin = 2 * time.Minute // for the way from the decision to the end of billing
	soon := i.IdleAt.Add(min(limit, 30*time.Second))
	if soon.Before(p.in.Now) {
		soon = p.in.Now
	}
	end := i.CreatedAt.Add(i.Billing.Charged(soon.Sub(i.CreatedAt)))
	if begin := end.Add(-margin); begin.After(soon) {
		return begin
	}
	return soon
}

// bootOf is how long a machine like this one takes to boot, typically.
func (p *plan) bootOf(i *fleet.Instance) time.Duration {
	boot, known := p.boots[i.Offering]
	if !known {
		boot = p.in.Beliefs.BootQuantile(i.Offering, i.Type, 0.5)
		p.boots[i.Offering] = boot
	}
	return boot
}
