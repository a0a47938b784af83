package simulator

import (
	"math"
	"time"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// Baseline is another product's rules, in as far as they decide what is bought and returned: for comparison only. What it
// buys is chosen by price among the same offerings; its errors, quotas and probes are handled as ours.
type Baseline struct {
	Every   time.Duration // between looks at the queue
	Creates int           // machines begun a look
	PerTask bool          // the cheapest machine for one task; else packed
	Idle    time.Duration // after which idle machines go
	Settle  time.Duration // after a purchase, nothing is returned for so long
	Quiet   time.Duration // a look waits until no more work came for so long, at most until Every
	Share   float64       // of the machines, that may be returned at once; 0 = all
	Fixed   int           // so many machines, always; other fields are not used
	last    time.Time
	bought  time.Time
	asked   int       // pieces of work at the last call
	came    time.Time // when more of them came
	since   time.Time // when the first of them came
}

// Decide implements the rules on top of ours: what is bought is narrowed, what is returned is timed anew.
func (b *Baseline) Decide(in scaler.Input) scaler.Output {
	policy := *in.Policy
	in.Policy = &policy
	policy.Idle = b.Idle
	in.Pace = scaler.Pace{} // they let no work wait for room
	if b.Fixed > 0 && policy.Retiring {
		return scaler.Decide(in)
	}
	if b.Fixed > 0 {
		policy.Min, policy.Max = b.Fixed, b.Fixed
		return scaler.Decide(in)
	}
	looks, next := b.looks(&in)
	if !looks {
		in.Demand = nil
	} else {
		b.last = in.Now
	}
	if b.PerTask {
		in.Demand = apart(in.Demand)
	}
	out := scaler.Decide(in)
	left, kept, going := b.Creates, out.Actions[:0], b.going(&in)
	for _, a := range out.Actions {
		if a.Kind == fleet.ActionDrain && a.Why == scaler.WhyIdle && b.Share > 0 {
			if going <= 0 {
				out.Wake = sooner(out.Wake, in.Now.Add(10*time.Second))
				continue
			}
			going--
		}
		if a.Kind == fleet.ActionDrain && a.Why == scaler.WhyIdle && in.Now.Before(b.bought.Add(b.Settle)) {
			continue
		}
		if a.Kind == fleet.ActionCreate && a.Why != scaler.WhyDemand {
			continue // neither hedges
		}
		if a.Kind == fleet.ActionCreate {
			b.bought = in.Now
		}
		if a.Kind == fleet.ActionCreate && b.Creates > 0 {
			if a.Count = min(a.Count, left); a.Count == 0 {
				continue
			}
			left -= a.Count
		}
		kept = append(kept, a)
	}
	out.Actions = kept
	if next.After(in.Now) {
		out.Wake = sooner(out.Wake, next)
	}
	return out
}

// looks reports whether the waiting work is looked at now, and else when.
func (b *Baseline) looks(in *scaler.Input) (now bool, next time.Time) {
	if b.Quiet == 0 {
		now = in.Now.Sub(b.last) >= b.Every
		if now {
			return true, in.Now.Add(b.Every)
		}
		return false, b.last.Add(b.Every)
	}
	asked := 0
	for i := range in.Demand {
		asked += in.Demand[i].Count
	}
	if asked > b.asked {
		b.came = in.Now
	}
	if b.asked = asked; asked == 0 {
		b.since = time.Time{}
		return false, time.Time{}
	}
	if b.since.IsZero() {
		b.since = in.Now
	}
	next = sooner(b.came.Add(b.Quiet), b.since.Add(b.Every))
	if now = !in.Now.Before(next); now {
		b.since, next = time.Time{}, in.Now.Add(b.Every)
	}
	return now, next
}

// going returns how many machines may still be returned.
func (b *Baseline) going(in *scaler.Input) int {
	if b.Share == 0 {
		return 0
	}
	n := int(math.Ceil(b.Share * float64(len(in.Instances))))
	for _, i := range in.Instances {
		if i.State == fleet.InstanceDraining || i.State == fleet.InstanceDestroying {
			n--
		}
	}
	return n
}

// sooner returns the earlier time; a zero a counts as never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// Arvados is the dispatcher's rules at its defaults: a look and one create in five seconds, the cheapest machine for one
// container at a time, and gone after a minute without work.
func Arvados() *Baseline {
	return &Baseline{Every: 5 * time.Second, Creates: 1, PerTask: true, Idle: time.Minute}
}

// ClusterAutoscaler is its rules at its defaults. It looks every ten seconds and packs by the cheapest group. A machine goes
// after ten minutes in which it was not needed, and not within ten minutes after any purchase. That it also moves work off
// machines which are filled by less than half is left out: work here does not move.
func ClusterAutoscaler() *Baseline {
	return &Baseline{Every: 10 * time.Second, Idle: 10 * time.Minute, Settle: 10 * time.Minute}
}

// Karpenter is its rules at its defaults. Waiting work is batched until none came for a second, ten at most, and packed onto
// the cheapest machines that fit. A machine without work goes once that was confirmed for a quarter of a minute, a tenth of all
// at once. That it also moves work off machines which others have room for is left out: work here does not move.
func Karpenter() *Baseline {
	return &Baseline{Every: 10 * time.Second, Quiet: time.Second, Idle: 15 * time.Second, Share: 0.1}
}

// apart asks for a machine a task: no choice of a bigger one for several.
func apart(demand []fleet.DemandClass) []fleet.DemandClass {
	list := append([]fleet.DemandClass(nil), demand...)
	for i := range list {
		list[i].Constraints = append([]*constraint.Constraint{{Operand: "distinct_hosts"}}, list[i].Constraints...)
	}
	return list
}
