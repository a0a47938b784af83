package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-project/drover"
)

// preemptionMargin is how much lower a job's priority must be to be preempted.
const preemptionMargin = 10

// evictable is what could become free on a candidate. It is read when a placement found no room.
type evictable struct {
	coming  drover.Capacity      // held by allocations that are being stopped
	awaited drover.Capacity      // of it, what earlier placements of this plan wait for
	victims []*drover.Allocation // lower priority first, within it the largest first
}

// preempts reports whether the configuration lets the job evict others.
func (r *run) preempts() bool {
	c := r.snapshot.SchedulerConfig()
	if c == nil {
		return false
	}
	switch r.job.Type {
	case drover.JobTypeSystem:
		return c.PreemptionConfig.SystemSchedulerEnabled
	case drover.JobTypeSysBatch:
		return c.PreemptionConfig.SysBatchSchedulerEnabled
	case drover.JobTypeBatch:
		return c.PreemptionConfig.BatchSchedulerEnabled
	}
	return c.PreemptionConfig.ServiceSchedulerEnabled
}

// preempt evicts what stands in the way of one allocation of the group, on one of the entries. The allocation itself
// is placed by the blocked evaluation, once the node said that the evicted ones ended; what is being stopped already
// is waited for, and nothing more is evicted for it.
func (r *run) preempt(b *board, entries []entry) {
	if !r.preempts() {
		return
	}
	var best *candidate
	var victims []*drover.Allocation
	for i := range entries {
		e := &entries[i]
		c := &b.stage.nodes[e.cand]
		if e.gone || b.buckets[e.bucket].full || b.oneOfJob && c.jobAllocs > 0 || b.oneOfGroup && e.collisions > 0 {
			continue
		}
		v, ok := r.victims(b, c)
		if ok && (best == nil || cheaper(v, victims)) {
			best, victims = c, v
		}
	}
	if best == nil {
		return
	}
	best.evict.awaited = best.evict.awaited.Add(b.ask.on(best.node))
	for _, v := range victims {
		r.evict(b, best, v)
	}
}

// victims returns what has to go from the candidate for one allocation of the group: nothing, if what is being
// stopped there is enough.
func (r *run) victims(b *board, c *candidate) ([]*drover.Allocation, bool) {
	if c.evict == nil {
		c.evict = r.readEvictable(c)
	}
	need := c.used.Sub(c.evict.coming).Add(c.evict.awaited).Add(b.ask.on(c.node))
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

func (r *run) readEvictable(c *candidate) *evictable {
	ev := &evictable{}
	stopped := map[string]bool{}
	for _, a := range r.plan.NodeUpdate[c.node.ID] {
		stopped[a.ID] = true
	}
	for a := range unfinishedOn(r.snapshot, c.node.ID) {
		switch {
		case !a.HoldsResources():
		case a.ServerTerminal() || stopped[a.ID]:
			ev.coming = ev.coming.Add(a.AllocatedResources.Used())
		case a.Claim == nil && a.JobID != r.job.ID && a.Job != nil && a.Job.Priority+preemptionMargin <= r.job.Priority:
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

func highest(victims []*drover.Allocation) int {
	top := -1
	for _, v := range victims {
		top = max(top, v.Job.Priority)
	}
	return top
}

// headStart is how long the evicted job waits before it is looked at again. What was evicted may end within
// milliseconds, before the job that evicted it is known to wait for that; the other used to place it again there.
const headStart = time.Second

// evict writes an eviction into the plan and asks for a look at the victim's job.
func (r *run) evict(b *board, c *candidate, v *drover.Allocation) {
	e := new(*v)
	e.DesiredStatus, e.ModifyTime = drover.AllocDesiredEvict, r.now.UnixNano()
	e.DesiredDescription = evictedFor(r.job)
	r.plan.NodePreemptions[c.node.ID] = append(r.plan.NodePreemptions[c.node.ID], e)
	c.evict.coming = c.evict.coming.Add(v.AllocatedResources.Used())
	c.evict.victims = slices.DeleteFunc(c.evict.victims, func(a *drover.Allocation) bool { return a.ID == v.ID })
	r.updates(b.group.Name).Preemptions++
	for _, x := range r.followUps {
		if x.JobID == v.JobID && x.Namespace == v.Namespace {
			return
		}
	}
	x := next(r.in.Eval, r.ids.New(), drover.TriggerPreemption, r.now)
	x.WaitUntil = r.now.Add(headStart)
	x.Namespace, x.JobID, x.Priority, x.Type, x.JobModifyIndex = v.Namespace, v.JobID, v.Job.Priority, v.Job.Type, v.Job.ModifyIndex
	r.followUps = append(r.followUps, x)
}

// evictedFor is why an allocation is evicted, until what takes its place is made and gives it another name.
func evictedFor(j *drover.Job) string { return "Preempted by job " + j.ID }

// nameEvicted tells what was evicted for a blocked evaluation which allocation took its place, now that it is placed.
func (r *run) nameEvicted() {
	if r.in.Eval.Status != drover.EvalBlocked || r.job == nil || !r.preempts() {
		return
	}
	for _, node := range sortedKeys(r.plan.NodeAllocation) {
		i := slices.IndexFunc(r.plan.NodeAllocation[node], func(a *drover.Allocation) bool { return a.CreateIndex == 0 })
		if i < 0 {
			continue
		}
		by := r.plan.NodeAllocation[node][i]
		for v := range r.snapshot.AllocationsByNode(node) {
			if v.DesiredStatus != drover.AllocDesiredEvict || v.PreemptedByAllocation != "" || v.DesiredDescription != evictedFor(r.job) {
				continue
			}
			e := new(*v)
			e.PreemptedByAllocation, e.DesiredDescription = by.ID, "Preempted by alloc ID "+by.ID
			r.plan.NodePreemptions[node] = append(r.plan.NodePreemptions[node], e)
			by.PreemptedAllocations = append(by.PreemptedAllocations, v.ID)
		}
	}
}
