package evalbroker

import (
	"slices"

	"github.com/drover-project/drover"
)

// Freed records that a node of the class has more room than before, or is new or eligible again, since the entry at
// index. Indexes do not decrease.
func (b *Blocked) Freed(nodeID, class string, index uint64) {
	b.latest[nodeID] = index
	b.events = append(b.events, freed{nodeID, class, index})
	if len(b.events) > 2*len(b.latest)+64 {
		b.events = slices.DeleteFunc(b.events, func(f freed) bool { return b.latest[f.nodeID] != f.index })
		b.events = slices.CompactFunc(b.events, func(x, y freed) bool { return x == y })
	}
}

// Room tells what is free on a node now; ok is false when nothing can be placed there.
type Room func(nodeID string) (free drover.Capacity, ok bool)

// WakeAll makes the next Wake return every evaluation: something changed that could help anyone.
func (b *Blocked) WakeAll() {
	for _, be := range b.order {
		be.now = true
	}
}

// Wake takes out and returns the evaluations that the free capacity may help, by priority and age. Each of them has to
// be reported Finished when the scheduler is through with it.
func (b *Blocked) Wake(room Room, quotas Quotas) []*drover.Evaluation {
	standings := map[string]*standing{}
	known := map[string]roomOf{}
	lookup := func(nodeID string) roomOf {
		r, ok := known[nodeID]
		if !ok {
			r.free, r.ok = room(nodeID)
			known[nodeID] = r
		}
		return r
	}
	var out []*drover.Evaluation
	for _, be := range slices.Clone(b.order) {
		if !be.now && !b.granted(be, quotas, standings) && !b.helped(be, lookup) {
			continue
		}
		b.drop(be)
		out = append(out, be.eval)
	}
	return out
}

type roomOf struct {
	free drover.Capacity
	ok   bool
}

// helped reports whether an event that be has not seen may help it, and charges the node for it.
func (b *Blocked) helped(be *blockedEval, lookup func(string) roomOf) bool {
	if quotaAlone(be.eval) {
		return false
	}
	undecided := false
	for i := len(b.events) - 1; i >= 0 && b.events[i].index > be.seen; i-- {
		f := b.events[i]
		if b.latest[f.nodeID] != f.index || !eligible(be.eval, f) {
			continue
		}
		r := lookup(f.nodeID)
		if fits, _ := be.ask.Fits(r.free); !r.ok || !fits {
			continue
		}
		if fits, _ := be.ask.Fits(r.free.Sub(b.charged[f.nodeID])); !fits {
			undecided = true // once those who were woken before it are finished, there may be room
			continue
		}
		if b.contested(be, f, r.free) {
			undecided = true
			continue
		}
		b.charge(be, f.nodeID)
		return true
	}
	if !undecided && len(b.events) > 0 {
		be.seen = max(be.seen, b.events[len(b.events)-1].index)
	}
	return false
}

func eligible(e *drover.Evaluation, f freed) bool {
	if e.NodeID != "" && (e.Type == drover.JobTypeSystem || e.Type == drover.JobTypeSysBatch) {
		return e.NodeID == f.nodeID
	}
	if e.EscapedComputedClass {
		return true
	}
	ok, known := e.ClassEligibility[f.class]
	return ok || !known
}

// contested reports whether an evaluation of higher priority is out that did not see the event, and there is no room for
// both.
func (b *Blocked) contested(be *blockedEval, f freed, free drover.Capacity) bool {
	higher := false
	for priority := range b.woken {
		higher = higher || priority > be.eval.Priority
	}
	if !higher {
		return false
	}
	for _, c := range b.charges {
		if c.priority <= be.eval.Priority || c.seen >= f.index {
			continue
		}
		if fits, _ := be.ask.Add(c.amount).Fits(free); !fits {
			return true
		}
	}
	return false
}

func (b *Blocked) charge(be *blockedEval, nodeID string) {
	if be.ask == (drover.Capacity{}) {
		return
	}
	b.charges[be.eval.ID] = charge{nodeID, be.ask, be.eval.Priority, b.events[len(b.events)-1].index}
	b.charged[nodeID] = b.charged[nodeID].Add(be.ask)
	b.woken[be.eval.Priority]++
}

// Finished says that the scheduler is through with a woken evaluation. It reports whether others may now be helped
// by what this one did not use.
func (b *Blocked) Finished(evalID string) bool {
	_, drew := b.drawn[evalID]
	delete(b.drawn, evalID)
	c, ok := b.charges[evalID]
	if !ok {
		return drew && len(b.order) > 0
	}
	delete(b.charges, evalID)
	if b.woken[c.priority]--; b.woken[c.priority] == 0 {
		delete(b.woken, c.priority)
	}
	left := b.charged[c.nodeID].Sub(c.amount)
	if left == (drover.Capacity{}) {
		delete(b.charged, c.nodeID)
	} else {
		b.charged[c.nodeID] = left
	}
	return len(b.order) > 0
}
