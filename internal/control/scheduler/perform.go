package scheduler

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/control/scheduler/rank"
	"github.com/drover-project/drover/internal/control/scheduler/reconcile"
)

// perform places what a group of a service or batch job needs.
func (r *run) perform(c *reconcile.Changes) {
	x := GroupExplanation{Group: c.Group.Name, note: c.Note}
	r.reconciler.Brake(c)
	var own []reconcile.Placement
	for _, p := range c.Place {
		if p.Job == nil {
			own = append(own, p)
		}
	}
	for _, j := range servingVersions(c.Place) {
		r.placeServing(j, c, &x)
	}
	if len(own)+len(c.Destructive) > 0 {
		r.placeOwn(own, c, &x)
	}
	r.queued[c.Group.Name] = c.Held + x.Failed
	r.groups = append(r.groups, x)
}

// placeOwn places what runs the job's own version.
func (r *run) placeOwn(own []reconcile.Placement, c *reconcile.Changes, x *GroupExplanation) {
	if c.Group.OwnVolumes() {
		r.placeEach(own, c, x)
		return
	}
	b := r.newBoard(r.Job, c.Group, "")
	b.Penalise(c.Avoid, true)
	full := false
	for _, p := range own {
		full = !r.placeOne(b, p, full, x)
	}
	for _, a := range c.Surge[:min(len(c.Surge), x.Failed)] {
		if len(x.overQuota) > 0 && !r.affordsInstead(b, a) {
			continue // nothing new would come of it
		}
		r.End(a, draft.WhyUpdating)
		r.Updates(c.Group.Name).Stop++
	}
	for _, a := range c.Destructive {
		r.replaceOne(b, a, x)
	}
	r.explain(b, x)
}

// servingVersions lists the older versions that some of the placements run.
func servingVersions(place []reconcile.Placement) []*drover.Job {
	var jobs []*drover.Job
	for _, p := range place {
		if p.Job != nil && !slices.Contains(jobs, p.Job) {
			jobs = append(jobs, p.Job)
		}
	}
	return jobs
}

// placeServing places what runs an older version, as that version wants it.
func (r *run) placeServing(j *drover.Job, c *reconcile.Changes, x *GroupExplanation) {
	g := j.Group(c.Group.Name)
	var b *rank.Board
	full := false
	for _, p := range c.Place {
		if p.Job != j {
			continue
		}
		if b == nil || g.OwnVolumes() {
			b, full = r.boardOf(j, g, p.Name), false
		}
		full = !r.placeOne(b, p, full, x)
	}
	r.explain(b, x)
}

// newBoard is board for a group whose failed placements are told by class.
func (r *run) newBoard(version *drover.Job, g *drover.TaskGroup, name string) *rank.Board {
	b := r.board(version, g, name)
	r.boards = append(r.boards, b)
	return b
}

// explain records why the last of the board's placements failed.
func (r *run) explain(b *rank.Board, x *GroupExplanation) {
	if x.Failed == 0 {
		return
	}
	x.taken = b.Taken()
	x.Metric = b.Metric
	x.Metric.CoalescedFailures, x.Metric.QuotaExhausted = x.Failed-1, x.overQuota
	r.failed[x.Group] = x.Metric
}

// placeOne makes one allocation and reports whether there was a node. With full it does not look: nothing that
// happened since the last failure can have made room.
func (r *run) placeOne(b *rank.Board, p reconcile.Placement, full bool, x *GroupExplanation) bool {
	if p.Rescheduled {
		avoid := p.FailedOn()
		b.Penalise(avoid, true)
		defer b.Penalise(avoid, false)
	}
	if full || !r.allocate(b, p, x) {
		x.Failed++
		if len(x.overQuota) == 0 { // the room of others is none under the quota
			r.preempt(b, b.Preempt)
		}
		return false
	}
	if p.Rescheduled {
		r.End(p.Previous, draft.WhyRescheduled)
	}
	return true
}

// replaceOne replaces an allocation by the new version. If there is room only where the old one is, that is stopped now. The
// new one is left to the blocked evaluation, which wakes when the node says that the old one ended.
func (r *run) replaceOne(b *rank.Board, a *drover.Allocation, x *GroupExplanation) {
	b.Vacate(a)
	if r.allocate(b, reconcile.Placement{Name: a.Name, Previous: a, Fresh: true}, x) {
		r.End(a, draft.WhyUpdating)
		return
	}
	x.Failed++
	if b.FitsInstead(a) && r.affordsInstead(b, a) {
		r.End(a, draft.WhyUpdating)
		return
	}
	b.Restore(a)
}

// allocate puts a new allocation on the best node.
func (r *run) allocate(b *rank.Board, p reconcile.Placement, x *GroupExplanation) bool {
	if !r.affords(b.Group, x) {
		return false
	}
	place, ok := takeNear(b, p.Previous)
	if !ok || !r.pays(place.Granted, x) {
		return false
	}
	a := r.add(b.Group, p, place)
	if p.Job != nil || r.Job.Group(b.Group.Name).OwnVolumes() {
		r.kept = append(r.kept, a) // the next board of the group has to know of it
	}
	x.count(place)
	return true
}

// takeNear finds a node for what replaces an allocation. It is the one that has its data, if the group's disk is sticky (or
// migrates, which includes that) and there is room, also where that allocation failed; else the best one.
func takeNear(b *rank.Board, previous *drover.Allocation) (rank.Place, bool) {
	if disk := b.Group.EphemeralDisk; disk != nil && (disk.Sticky || disk.Migrate) && previous != nil {
		if place, ok := b.TakeOn(previous.NodeID); ok {
			return place, true
		}
	}
	return b.Take()
}

// count takes note of a placement.
func (x *GroupExplanation) count(place rank.Place) {
	if x.Placed == 0 {
		x.Metric = place.Metric
	}
	x.Placed++
}

// add writes a new allocation.
func (r *run) add(g *drover.TaskGroup, p reconcile.Placement, place rank.Place) *drover.Allocation {
	n := place.Node
	a := &drover.Allocation{
		ID: r.IDs.New(), Namespace: r.Job.Namespace, EvalID: r.Eval.ID, Name: p.Name, NodeID: n.ID, NodeName: n.Name,
		JobID: r.Job.ID, Job: r.Job, TaskGroup: g.Name, AllocatedResources: place.Granted, Metrics: place.Metric,
		DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientPending,
		CreateTime: r.Now.UnixNano(), ModifyTime: r.Now.UnixNano(),
	}
	r.reconciler.Complete(a, p, g, n)
	r.Plan.NodeAllocation[n.ID] = append(r.Plan.NodeAllocation[n.ID], a)
	return a
}

// preempt evicts what stands in the way of one allocation of the board's group; find says what that is. The allocation itself
// is placed by the blocked evaluation, once the node said that the evicted ones ended. What is being stopped already is waited
// for, and nothing more is evicted for it.
func (r *run) preempt(b *rank.Board, find func(rank.Preemptor) (string, []*drover.Allocation)) {
	if !r.preempts() {
		return
	}
	_, victims := find(rank.Preemptor{Job: r.Job, Stopping: r.Plan.NodeUpdate})
	for _, v := range victims {
		r.Evict(v)
		r.Updates(b.Group.Name).Preemptions++
	}
}

// preempts reports whether the configuration lets the job evict others.
func (r *run) preempts() bool {
	c := r.snapshot.SchedulerConfig()
	if c == nil {
		return false
	}
	switch r.Job.Type {
	case drover.JobTypeSystem:
		return c.PreemptionConfig.SystemSchedulerEnabled
	case drover.JobTypeSysBatch:
		return c.PreemptionConfig.SysBatchSchedulerEnabled
	case drover.JobTypeBatch:
		return c.PreemptionConfig.BatchSchedulerEnabled
	}
	return c.PreemptionConfig.ServiceSchedulerEnabled
}
