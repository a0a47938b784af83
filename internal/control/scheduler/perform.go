package scheduler

import (
	"slices"

	"github.com/drover-project/drover"
)

// perform places what a group needs and writes the plan.
func (r *run) perform(c *changes) {
	x := GroupExplanation{Group: c.group.Name, note: c.note}
	r.brake(c)
	r.queued[c.group.Name] = c.held
	var own []placement
	for _, p := range c.place {
		if p.job == nil {
			own = append(own, p)
		}
	}
	for _, j := range servingVersions(c.place) {
		r.placeServing(j, c, &x)
	}
	if len(own)+len(c.destructive) > 0 {
		b := newBoard(r.deps, r.theStage(), c.group, r.kept)
		r.boards = append(r.boards, b)
		b.penalise(c.avoid, true)
		full := false
		for _, p := range own {
			full = !r.placeOne(b, p, full, &x)
		}
		for _, a := range c.surge[:min(len(c.surge), x.Failed)] {
			r.end(a, whyUpdating)
			r.updates(c.group.Name).Stop++
		}
		for _, a := range c.destructive {
			r.replaceOne(b, a, &x)
		}
		r.explain(b, &x)
	}
	r.queued[c.group.Name] += x.Failed
	r.groups = append(r.groups, x)
}

// servingVersions lists the older versions that some of the placements run.
func servingVersions(place []placement) []*drover.Job {
	var jobs []*drover.Job
	for _, p := range place {
		if p.job != nil && !slices.Contains(jobs, p.job) {
			jobs = append(jobs, p.job)
		}
	}
	return jobs
}

// placeServing places what runs an older version, as that version wants it.
func (r *run) placeServing(j *drover.Job, c *changes, x *GroupExplanation) {
	d := new(*r.deps)
	d.job = j
	b := newBoard(d, r.theStage(), j.Group(c.group.Name), r.kept)
	r.boards = append(r.boards, b)
	full := false
	for _, p := range c.place {
		if p.job == j {
			full = !r.placeOne(b, p, full, x)
		}
	}
	r.explain(b, x)
}

// conclude records what was not placed.
func (r *run) conclude(b *board, x *GroupExplanation) {
	r.queued[x.Group] += x.Failed
	r.explain(b, x)
}

// explain records why the last of the board's placements failed.
func (r *run) explain(b *board, x *GroupExplanation) {
	if x.Failed == 0 {
		return
	}
	x.taken = b.taken()
	x.Metric = b.metric
	x.Metric.CoalescedFailures = x.Failed - 1
	r.failed[x.Group] = x.Metric
}

// placeOne makes one allocation and reports whether there was a node. With full it does not look: nothing that
// happened since the last failure can have made room.
func (r *run) placeOne(b *board, p placement, full bool, x *GroupExplanation) bool {
	var avoid []string
	if p.reschedule {
		avoid = penalties(p.previous)
		b.penalise(avoid, true)
		defer b.penalise(avoid, false)
	}
	if full || !r.allocate(b, p, x) {
		x.Failed++
		r.preempt(b, b.entries)
		return false
	}
	if p.reschedule {
		r.end(p.previous, whyRescheduled)
	}
	return true
}

// replaceOne replaces an allocation by the new version. If there is room only where the old one is, that is stopped
// now, and the new one is left to the blocked evaluation, which wakes when the node says that the old one ended.
func (r *run) replaceOne(b *board, a *drover.Allocation, x *GroupExplanation) {
	b.vacate(a, -1)
	if r.allocate(b, placement{name: a.Name, previous: a, fresh: true}, x) {
		r.end(a, whyUpdating)
		return
	}
	x.Failed++
	if b.fitsInstead(a) {
		r.end(a, whyUpdating)
		return
	}
	b.vacate(a, +1)
}

// fitsInstead reports whether the group would fit on a's node once a ended.
func (b *board) fitsInstead(a *drover.Allocation) bool {
	i := b.entryOf(a.NodeID)
	if i < 0 {
		return false
	}
	c := &b.stage.nodes[b.entries[i].cand]
	used := c.used
	if a.HoldsResources() {
		used = used.Sub(a.AllocatedResources.Used())
	}
	ok, _ := used.Add(b.ask.on(c.node)).Fits(c.total)
	return ok
}

// allocate puts a new allocation into the plan.
func (r *run) allocate(b *board, p placement, x *GroupExplanation) bool {
	c, granted, metric := b.take()
	if c == nil {
		return false
	}
	a := r.add(b.group, p, c.node, granted, metric)
	if p.job != nil {
		r.kept = append(r.kept, a) // the next board of the group has to know of it
	}
	if x.Placed == 0 {
		x.Metric = metric
	}
	x.Placed++
	return true
}

// add writes a new allocation.
func (r *run) add(g *drover.TaskGroup, p placement, n *drover.Node, granted *drover.AllocatedResources, metric *drover.AllocationMetric) *drover.Allocation {
	a := &drover.Allocation{
		ID: r.ids.New(), Namespace: r.job.Namespace, EvalID: r.in.Eval.ID, Name: p.name, NodeID: n.ID, NodeName: n.Name,
		JobID: r.job.ID, Job: r.job, TaskGroup: g.Name, AllocatedResources: granted, Metrics: metric,
		DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientPending,
		CreateTime: r.now.UnixNano(), ModifyTime: r.now.UnixNano(),
	}
	if p.previous != nil {
		a.PreviousAllocation = p.previous.ID
	}
	if p.previous != nil && !p.fresh {
		a.RescheduleTracker = trackerOf(p.previous, g.ReschedulePolicy, p.reschedule, r.now)
	}
	switch {
	case p.job != nil && !r.takesOver(p.job, g.Name, n):
		a.Job, a.DeploymentID = p.job, r.deployments.of(p.job, g.Name)
	case r.deployments.state(g.Name) != nil:
		a.DeploymentID = r.deployments.id()
		if p.canary {
			a.DeploymentStatus = &drover.AllocDeploymentStatus{Canary: true}
		}
	}
	r.plan.NodeAllocation[n.ID] = append(r.plan.NodeAllocation[n.ID], a)
	return a
}

// taken counts the nodes that only distinct_hosts or distinct_property refuse.
func (b *board) taken() int {
	n := 0
	for i := range b.entries {
		e := &b.entries[i]
		c := &b.stage.nodes[e.cand]
		if !e.exhausted && (b.buckets[e.bucket].full || b.oneOfJob && c.jobAllocs > 0 || b.oneOfGroup && e.collisions > 0) {
			n++
		}
	}
	return n
}
