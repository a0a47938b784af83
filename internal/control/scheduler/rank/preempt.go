package rank

import (
	"cmp"
	"slices"

	"github.com/drover-project/drover"
)

// preemptionMargin is how much lower a job's priority must be to be preempted.
const preemptionMargin = 10

// evictable is what could become free on a candidate. It is read when a placement found no room.
type evictable struct {
	coming  drover.Capacity      // held by allocations that are being stopped, or evicted by this plan
	awaited drover.Capacity      // of it, what earlier placements of this plan wait for
	victims []*drover.Allocation // lower priority first, within it the largest first
}

// Preemptor is the job that others may be evicted for.
type Preemptor struct {
	Job      *drover.Job
	Stopping map[string][]*drover.Allocation // by node: what the plan stops so far
}

// Preempt finds the node where room for one allocation of the group costs the least, and returns what has to be evicted
// there: nothing, where what is being stopped already is enough. The room counts as awaited from then on. The node's id
// is "" if there is no such node.
func (b *Board) Preempt(p Preemptor) (nodeID string, victims []*drover.Allocation) {
	return b.preempt(p, b.entries)
}

// PreemptAt is Preempt for one node.
func (b *Board) PreemptAt(i int, p Preemptor) (nodeID string, victims []*drover.Allocation) {
	return b.preempt(p, b.entries[i:i+1])
}

// preempt takes the cheapest set of victims among all the given entries. Nodes whose ports, cores or devices were
// refused, or whose devices or host volumes are in use, are passed over: only divisible resources become free here.
func (b *Board) preempt(p Preemptor, entries []entry) (nodeID string, victims []*drover.Allocation) {
	var best *candidate
	for i := range entries {
		e := &entries[i]
		c := &b.stage.nodes[e.cand]
		if e.gone || b.distinct(e) || !b.hasDevices(c) || b.contended(c, "") != "" {
			continue
		}
		v, ok := b.victims(p, c)
		if ok && (best == nil || cheaper(v, victims)) {
			best, victims = c, v
		}
	}
	if best == nil {
		return "", nil
	}
	ev := best.evict
	ev.awaited = ev.awaited.Add(b.ask.On(best.node))
	for _, v := range victims {
		ev.coming = ev.coming.Add(v.AllocatedResources.Used())
		ev.victims = slices.DeleteFunc(ev.victims, func(a *drover.Allocation) bool { return a.ID == v.ID })
	}
	return best.node.ID, victims
}

// hasDevices reports whether the devices that the group asks for are free on the node, so that nothing is evicted there in vain.
func (b *Board) hasDevices(c *candidate) bool {
	if !b.ask.Device {
		return true
	}
	free, _ := b.ask.Devices(c.node, b.holdOf(c), b.Matcher)
	return free
}

// Awaited reports whether an earlier placement of the plan waits for room on the node.
func (b *Board) Awaited(i int) bool {
	c := &b.stage.nodes[b.entries[i].cand]
	return c.evict != nil && c.evict.awaited != (drover.Capacity{})
}

// victims returns what has to go from the candidate for one allocation of the group: nothing, if what is being
// stopped there is enough.
func (b *Board) victims(p Preemptor, c *candidate) ([]*drover.Allocation, bool) {
	if c.evict == nil {
		c.evict = b.readEvictable(p, c)
	}
	need := c.used.Sub(c.evict.coming).Add(c.evict.awaited).Add(b.ask.On(c.node))
	var out []*drover.Allocation
	for _, v := range c.evict.victims {
		if ok, _ := need.Fits(c.total); ok {
			break
		}
		out = append(out, v)
		need = need.Sub(v.AllocatedResources.Used())
	}
	if ok, _ := need.Fits(c.total); !ok {
		return nil, false
	}
	for i := len(out) - 1; i >= 0; i-- { // spare the highest priorities, if the others are enough
		more := need.Add(out[i].AllocatedResources.Used())
		if ok, _ := more.Fits(c.total); ok {
			need = more
			out = slices.Delete(out, i, i+1)
		}
	}
	return out, true
}

// readEvictable reads a node's allocations, once for a candidate. Claimed runners are never victims, nor are
// allocations of the same job, or of a priority less than preemptionMargin below the job's.
func (b *Board) readEvictable(p Preemptor, c *candidate) *evictable {
	ev := &evictable{}
	stopped := map[string]bool{}
	for _, a := range p.Stopping[c.node.ID] {
		stopped[a.ID] = true
	}
	for a := range unfinishedOn(b.Snapshot, c.node.ID) {
		switch {
		case !a.HoldsResources():
		case a.ServerTerminal() || stopped[a.ID]:
			ev.coming = ev.coming.Add(a.AllocatedResources.Used())
		case a.Claim == nil && a.JobID != p.Job.ID && a.Job != nil && a.Job.Priority+preemptionMargin <= p.Job.Priority:
			ev.victims = append(ev.victims, a)
		}
	}
	slices.SortFunc(ev.victims, func(x, y *drover.Allocation) int {
		ux, uy := x.AllocatedResources.Used(), y.AllocatedResources.Used()
		return cmp.Or(cmp.Compare(x.Job.Priority, y.Job.Priority), cmp.Compare(uy.MemoryMB, ux.MemoryMB),
			cmp.Compare(uy.CPU, ux.CPU), cmp.Compare(x.ID, y.ID))
	})
	return ev
}

// cheaper compares sets of victims: by their highest priority, then by their number.
func cheaper(x, y []*drover.Allocation) bool {
	return cmp.Or(cmp.Compare(highest(x), highest(y)), cmp.Compare(len(x), len(y))) < 0
}

// highest returns the highest priority among the victims, -1 if there is none, which makes a node without victims the
// cheapest.
func highest(victims []*drover.Allocation) int {
	top := -1
	for _, v := range victims {
		top = max(top, v.Job.Priority)
	}
	return top
}
