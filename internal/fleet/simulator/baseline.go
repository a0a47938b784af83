package simulator

import (
	"time"

	"drover"
	"drover/internal/fleet/scaler"
)

// Baseline is another product's rules, in as far as they decide what is bought and returned: for comparison only. What it
// buys is chosen by price among the same offerings; its errors, quotas and probes are handled as ours.
type Baseline struct {
	Every   time.Duration // between looks at the queue
	Creates int           // machines begun a look
	PerTask bool          // the cheapest machine for one task; else packed
	Idle    time.Duration // after which idle machines go
	Settle  time.Duration // after a purchase, nothing is returned for so long
	Fixed   int           // so many machines, always; other fields are not used
	last    time.Time
	bought  time.Time
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
	looks := in.Now.Sub(b.last) >= b.Every
	if !looks {
		in.Demand = nil
	} else {
		b.last = in.Now
	}
	if b.PerTask {
		in.Demand = apart(in.Demand)
	}
	out := scaler.Decide(in)
	left, kept := b.Creates, out.Actions[:0]
	for _, a := range out.Actions {
		if a.Kind == scaler.Drain && a.Why == scaler.WhyIdle && in.Now.Before(b.bought.Add(b.Settle)) {
			continue
		}
		if a.Kind == scaler.Create && a.Why != scaler.WhyDemand {
			continue // neither hedges
		}
		if a.Kind == scaler.Create {
			b.bought = in.Now
		}
		if a.Kind == scaler.Create && b.Creates > 0 {
			if a.Count = min(a.Count, left); a.Count == 0 {
				continue
			}
			left -= a.Count
		}
		kept = append(kept, a)
	}
	out.Actions = kept
	if next := b.last.Add(b.Every); next.After(in.Now) && (out.Wake.IsZero() || next.Before(out.Wake)) {
		out.Wake = next
	}
	return out
}

// Arvados is the dispatcher's rules at its defaults: a look and one create in five seconds, the cheapest machine for one
// container at a time, and gone after a minute without work.
func Arvados() *Baseline {
	return &Baseline{Every: 5 * time.Second, Creates: 1, PerTask: true, Idle: time.Minute}
}

// ClusterAutoscaler is its rules at its defaults: a look every ten seconds, packed by the cheapest group, gone after ten
// minutes in which it was not needed, and not within ten minutes after any purchase. That it also moves work off machines
// which are filled by less than half is left out: work here does not move.
func ClusterAutoscaler() *Baseline {
	return &Baseline{Every: 10 * time.Second, Idle: 10 * time.Minute, Settle: 10 * time.Minute}
}

// apart asks for a machine a task: no choice of a bigger one for several.
func apart(demand []drover.DemandClass) []drover.DemandClass {
	list := append([]drover.DemandClass(nil), demand...)
	for i := range list {
		list[i].Constraints = append([]*drover.Constraint{{Operand: "distinct_hosts"}}, list[i].Constraints...)
	}
	return list
}
