package simulator

import (
	"time"

	"drover"
	"drover/internal/fleet/scaler"
)

// Baseline is another product's rules, in as far as they decide what is bought and returned: for comparison only.
type Baseline struct {
	Every   time.Duration // between looks at the queue
	Creates int           // machines begun a look
	PerTask bool          // the cheapest machine for one task; else packed
	Idle    time.Duration // after which idle machines go
	Fixed   int           // so many machines, always; other fields are not used
	last    time.Time
}

// Decide implements the rules on top of ours: what is bought is narrowed, what is returned is timed anew.
func (b *Baseline) Decide(in scaler.Input) scaler.Output {
	policy := *in.Policy
	in.Policy = &policy
	policy.Idle = b.Idle
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

// apart asks for a machine a task: no choice of a bigger one for several.
func apart(demand []drover.DemandClass) []drover.DemandClass {
	list := append([]drover.DemandClass(nil), demand...)
	for i := range list {
		list[i].Constraints = append([]*drover.Constraint{{Operand: "distinct_hosts"}}, list[i].Constraints...)
	}
	return list
}
