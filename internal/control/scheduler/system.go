package scheduler

import (
	"time"

	"drover"
)

// scheduleSystem handles jobs with one allocation of each group on every node that can run it.
func (r *run) scheduleSystem() {
	r.deployments.load(r)
	byGroup := map[string][]*drover.Allocation{}
	for a := range r.allocations() {
		if r.job.Group(a.TaskGroup) == nil {
			r.dropRemoved(a)
			continue
		}
		byGroup[a.TaskGroup] = append(byGroup[a.TaskGroup], a)
	}
	for _, g := range r.job.TaskGroups {
		r.systemGroup(g, byGroup[g.Name])
	}
}

// onNode is a group's state on one node.
type onNode struct {
	live     *drover.Allocation
	previous *drover.Allocation // the newest that ended
	failures int                // that failed, of the current version
}

func (r *run) systemGroup(g *drover.TaskGroup, allocs []*drover.Allocation) {
	st := r.theStage()
	b := newBoard(r.deps, st, g, nil)
	r.boards = append(r.boards, b)
	x := GroupExplanation{Group: g.Name}
	if value(g.Count) == 0 && g.Count != nil {
		b.entries = b.entries[:0]
		for i := range b.byCandidate {
			b.byCandidate[i] = -1
		}
	}
	states := r.sortSystem(g, b, allocs)
	limit := r.systemLimit(g)
	for i := range b.entries {
		node := st.nodes[b.entries[i].cand].node
		limit -= r.systemOn(b, int32(i), states[node.ID], limit, &x)
	}
	if limit < 0 {
		r.wake(r.now.Add(max(stagger(g), time.Second)), drover.TriggerRollingUpdate, "continues a rolling update")
	}
	r.conclude(b, &x)
	r.groups = append(r.groups, x)
}

// sortSystem finds each node's allocation, and ends those that have no business where they are.
func (r *run) sortSystem(g *drover.TaskGroup, b *board, allocs []*drover.Allocation) map[string]*onNode {
	states := map[string]*onNode{}
	u := r.updates(g.Name)
	for _, a := range allocs {
		s := states[a.NodeID]
		if s == nil {
			s = &onNode{}
			states[a.NodeID] = s
		}
		switch {
		case a.ClientTerminal():
			if !r.older(a) && a.ClientStatus == drover.AllocClientFailed {
				s.failures++
			}
			if s.previous == nil || a.CreateIndex > s.previous.CreateIndex {
				s.previous = a
			}
		case r.away(&sorted{}, g, a):
			s.live = a
			u.Ignore++
		case r.lost(a.NodeID):
			r.stop(a, whyLost, drover.AllocClientLost)
			u.Stop++
		case a.ServerTerminal():
		case isTrue(a.DesiredTransition.Migrate):
			r.end(a, whyNotOnNode)
			u.Stop++
		case s.live != nil || !r.maySystemStay(g, b, a):
			r.end(a, whyNotNeeded)
			u.Stop++
		default:
			s.live = a
			if b.entryOf(a.NodeID) < 0 {
				r.stayIneligible(g, a, u)
			}
		}
	}
	return states
}

// maySystemStay reports whether a running allocation still belongs on its node: an ineligible node keeps what it has,
// one that the job's constraints refuse does not.
func (r *run) maySystemStay(g *drover.TaskGroup, b *board, a *drover.Allocation) bool {
	if g.Count != nil && *g.Count == 0 {
		return false
	}
	return b.entryOf(a.NodeID) >= 0 || r.mayStay(a, g)
}

// stayIneligible updates in place what runs on a node that takes no new allocations, and leaves the rest alone.
func (r *run) stayIneligible(g *drover.TaskGroup, a *drover.Allocation, u *drover.DesiredUpdates) {
	if r.updateOf(a, g) == updateInPlace {
		r.changeInPlace(a)
		u.InPlaceUpdate++
		return
	}
	u.Ignore++
}

// systemOn decides one node and returns 1 if it took, or would have taken, from the update's limit.
func (r *run) systemOn(b *board, i int32, s *onNode, limit int, x *GroupExplanation) int {
	g, u := b.group, r.updates(b.group.Name)
	p := placement{name: allocName(r.job, g, 0)}
	switch {
	case s == nil:
	case s.live != nil:
		return r.updateSystem(b, i, s.live, limit, x)
	case s.previous != nil:
		if r.systemRests(s) {
			u.Ignore++
			return 0
		}
		p.previous = s.previous
	}
	if r.allocateOn(b, i, p, x) {
		u.Place++
	}
	return 0
}

// systemRests reports whether a node whose allocation ended gets no new one now: a sysbatch job has run, or a failing
// one waits for a time that doubles.
func (r *run) systemRests(s *onNode) bool {
	ended := s.previous
	if r.job.Type == drover.JobTypeSysBatch {
		stopped := ended.ServerTerminal() || ended.ClientStatus == drover.AllocClientLost
		return !r.older(ended) && !stopped
	}
	if s.failures < 2 || ended.ClientStatus != drover.AllocClientFailed || r.older(ended) {
		return false
	}
	delay := poolBackoff
	for range min(s.failures-2, 16) {
		delay = min(2*delay, poolBackoffMaximum)
	}
	due := failedAt(ended).Add(delay)
	if due.After(r.now) {
		r.wake(due, drover.TriggerRetryFailedAlloc, "created for delayed replacement of a failed system allocation")
		return true
	}
	return false
}

// updateSystem brings a running allocation to the job's version, as far as the limit goes.
func (r *run) updateSystem(b *board, i int32, a *drover.Allocation, limit int, x *GroupExplanation) int {
	u := r.updates(b.group.Name)
	switch r.updateOf(a, b.group) {
	case updateNone:
		u.Ignore++
	case updateInPlace:
		r.changeInPlace(a)
		u.InPlaceUpdate++
	case updateDestructive:
		if limit <= 0 {
			u.Ignore++
			return 1
		}
		u.DestructiveUpdate++
		if r.allocateOn(b, i, placement{name: a.Name, previous: a, fresh: true}, x) || b.fitsInstead(a) {
			r.end(a, whyUpdating)
		}
		return 1
	}
	return 0
}

// allocateOn places on one node.
func (r *run) allocateOn(b *board, i int32, p placement, x *GroupExplanation) bool {
	e := &b.entries[i]
	c := &b.stage.nodes[e.cand]
	if e.pos < 0 {
		x.Failed++
		r.preempt(b, b.entries[i:i+1])
		return false
	}
	granted, lacking := b.grant(c)
	if lacking != "" {
		b.exhaust(e, lacking)
		x.Failed++
		return false
	}
	metric := b.briefMetric(i)
	b.occupy(i, granted)
	r.add(b.group, p, c.node, granted, metric)
	if x.Placed == 0 {
		x.Metric = metric
	}
	x.Placed++
	return true
}

// systemLimit is how many nodes one evaluation may update.
func (r *run) systemLimit(g *drover.TaskGroup) int {
	if g.Update == nil || value(g.Update.MaxParallel) == 0 {
		return len(r.stage.nodes) + 1
	}
	return value(g.Update.MaxParallel)
}

func stagger(g *drover.TaskGroup) time.Duration {
	if g.Update == nil {
		return 0
	}
	return g.Update.Stagger
}
