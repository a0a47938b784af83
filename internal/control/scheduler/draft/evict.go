package draft

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
)

// headStart is how long the evicted job waits before it is looked at again. What was evicted may end within
// milliseconds, before the job that evicted it is known to wait for that: without the wait, the evicted job would take
// the place back.
const headStart = time.Second

// Evict stops an allocation of another job to make room, and asks for a look at that job.
func (d *Draft) Evict(v *drover.Allocation) {
	e := new(*v)
	e.DesiredStatus, e.ModifyTime = drover.AllocDesiredEvict, d.Now.UnixNano()
	e.DesiredDescription = evictedFor(d.Job)
	d.Plan.NodePreemptions[v.NodeID] = append(d.Plan.NodePreemptions[v.NodeID], e)
	for _, x := range d.FollowUps {
		if x.JobID == v.JobID && x.Namespace == v.Namespace {
			return
		}
	}
	x := Next(d.Eval, d.IDs.New(), drover.TriggerPreemption, d.Now)
	x.WaitUntil = d.Now.Add(headStart)
	x.Namespace, x.JobID, x.JobModifyIndex = v.Namespace, v.JobID, v.Job.ModifyIndex
	x.Priority, x.Type = v.Job.Priority, v.Job.Type
	d.FollowUps = append(d.FollowUps, x)
}

// evictedFor is why an allocation is evicted, until what takes its place is made and gives it another name.
func evictedFor(j *drover.Job) string { return "Preempted by job " + j.ID }

// NameEvicted tells what was evicted for the job before which allocation took its place, now that it is placed.
func (d *Draft) NameEvicted() {
	for _, node := range slices.Sorted(maps.Keys(d.Plan.NodeAllocation)) {
		i := slices.IndexFunc(d.Plan.NodeAllocation[node], func(a *drover.Allocation) bool { return a.CreateIndex == 0 })
		if i < 0 {
			continue
		}
		by := d.Plan.NodeAllocation[node][i]
		for v := range d.snapshot.AllocationsByNode(node) {
			if v.DesiredStatus != drover.AllocDesiredEvict || v.PreemptedByAllocation != "" || v.DesiredDescription != evictedFor(d.Job) {
				continue
			}
			e := new(*v)
			e.PreemptedByAllocation, e.DesiredDescription = by.ID, "Preempted by alloc ID "+by.ID
			d.Plan.NodePreemptions[node] = append(d.Plan.NodePreemptions[node], e)
			by.PreemptedAllocations = append(by.PreemptedAllocations, v.ID)
		}
	}
}
