package rank

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/grant"
)

// Place is where an allocation goes.
type Place struct {
	Node    *drover.Node
	Granted *drover.AllocatedResources
	Metric  *drover.AllocationMetric // why there
}

// Take finds the best node for one more allocation and takes what that holds. It reports false if there is none.
func (b *Board) Take() (Place, bool) {
	for {
		i := b.best()
		if i < 0 {
			return Place{}, false
		}
		e := &b.entries[i]
		c := &b.stage.nodes[e.cand]
		granted, lacking := b.grant(c)
		if lacking == "" {
			metric := b.explainChoice(i)
			b.occupy(i, granted)
			return Place{c.node, granted, metric}, true
		}
		e.gone = true
		b.exhaust(e, lacking)
		b.remove(i)
		b.refresh(e.bucket)
		b.requeue(e.bucket)
	}
}

// HasRoom reports whether a node is free for one more allocation, but for ports, cores and devices.
func (b *Board) HasRoom(i int) bool { return b.entries[i].pos >= 0 }

// TakeAt is Take for one node that has room.
func (b *Board) TakeAt(i int) (Place, bool) {
	e := &b.entries[i]
	c := &b.stage.nodes[e.cand]
	granted, lacking := b.grant(c)
	if lacking != "" {
		b.exhaust(e, lacking)
		return Place{}, false
	}
	metric := b.briefMetric(int32(i))
	b.occupy(int32(i), granted)
	return Place{c.node, granted, metric}, true
}

// TakeOn is TakeAt for a node by its id, if that can run the group, has room, and no distinct operand forbids it.
func (b *Board) TakeOn(nodeID string) (Place, bool) {
	i := b.entryOf(nodeID)
	if i < 0 || !b.HasRoom(int(i)) || b.buckets[b.entries[i].bucket].full {
		return Place{}, false
	}
	return b.TakeAt(int(i))
}

// grant gives exact things, reading the node's allocations only if there are any to give.
func (b *Board) grant(c *candidate) (*drover.AllocatedResources, string) {
	return b.ask.Grant(c.node, b.holdOf(c), b.Matcher, b.Random)
}

// holdOf reads what the node's allocations hold, if it matters; it is nil else.
func (b *Board) holdOf(c *candidate) *grant.Hold {
	if c.hold == nil && b.ask.Bounded(c.node) {
		c.hold = grant.NewHold(c.node, unfinishedOn(b.Snapshot, c.node.ID))
	}
	return c.hold
}

// occupy books an allocation on the entry's node.
func (b *Board) occupy(i int32, granted *drover.AllocatedResources) {
	e := &b.entries[i]
	c := &b.stage.nodes[e.cand]
	c.used = c.used.Add(b.ask.On(c.node))
	c.jobAllocs++
	if c.hold != nil {
		c.hold.Add(granted)
	}
	if len(b.writes) > 0 {
		b.writersOn(c).add("", b.Job, b.writes)
	}
	e.collisions++
	b.placed++
	b.rescore(i)
	b.recount(e.bucket, (*property).add)
}

// recount changes the counts of a bucket's values by one and refreshes the boosts which that changes.
func (b *Board) recount(bucket int32, change func(*property, int32) bool) {
	if len(b.properties) == 0 {
		return
	}
	others := len(b.properties) > 1
	for j, p := range b.properties {
		others = change(p, b.buckets[bucket].values[j]) || others
	}
	if others {
		b.refreshAll()
	} else {
		b.reboost(bucket)
		b.requeue(bucket)
	}
}

// Vacate takes back the count of an allocation that is about to be replaced, but not what it holds; Restore undoes that.
func (b *Board) Vacate(a *drover.Allocation) { b.vacate(a, -1) }

// Restore counts an allocation that is not replaced after all.
func (b *Board) Restore(a *drover.Allocation) { b.vacate(a, +1) }

// vacate changes by delta how many allocations of the job are counted on the node, which its score and the spread
// depend on. Nodes that are no candidates have no entry and no score.
func (b *Board) vacate(a *drover.Allocation, delta int32) {
	i := b.entryOf(a.NodeID)
	if i < 0 {
		return
	}
	e := &b.entries[i]
	e.collisions += delta
	b.stage.nodes[e.cand].jobAllocs += delta
	b.rescore(i)
	if delta < 0 {
		b.recount(e.bucket, (*property).subtract)
	} else {
		b.recount(e.bucket, (*property).add)
	}
}

// Penalise avoids nodes from now on, or ends that.
func (b *Board) Penalise(nodes []string, on bool) {
	for _, id := range nodes {
		if i := b.entryOf(id); i >= 0 && b.entries[i].penalised != on {
			b.entries[i].penalised = on
			b.rescore(i)
		}
	}
}

// FitsInstead reports whether the group would fit on a's node once a ended.
func (b *Board) FitsInstead(a *drover.Allocation) bool {
	i := b.entryOf(a.NodeID)
	if i < 0 {
		return false
	}
	c := &b.stage.nodes[b.entries[i].cand]
	used := c.used
	if a.HoldsResources() {
		used = used.Sub(a.AllocatedResources.Used())
	}
	ok, _ := used.Add(b.ask.On(c.node)).Fits(c.total)
	return ok && b.contended(c, a.ID) == ""
}
