package scheduler

import (
	"cmp"
	"time"

	"github.com/drover-project/drover"
)

// A failed system allocation is replaced on its node after a time that doubles with each failure there.
const (
	systemBackoff        = 30 * time.Second
	systemBackoffMaximum = time.Hour
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
	r.deployments.finishEmpty()
}

// onNode is a group's state on one node.
type onNode struct {
	live     *drover.Allocation
	previous *drover.Allocation // the newest that ended; of sysbatch jobs also one that is being stopped
	failures map[uint64]int     // that ended by themselves, by version
}

// systemRun is one group of a system or sysbatch job being looked at.
type systemRun struct {
	*run
	b       *board
	u       *drover.DesiredUpdates
	x       GroupExplanation
	states  map[string]*onNode
	out     rollOut
	base    *drover.Job            // what serves while the job's version is not proven; nil if that is the job's version
	serving map[*drover.Job]*board // of older versions that are placed
}

func (r *run) systemGroup(g *drover.TaskGroup, allocs []*drover.Allocation) {
	st := r.theStage()
	b := newBoard(r.deps, st, g, nil)
	r.boards = append(r.boards, b)
	if g.Count != nil && *g.Count == 0 {
		b.entries = b.entries[:0]
		for i := range b.byCandidate {
			b.byCandidate[i] = -1
		}
	}
	s := &systemRun{run: r, b: b, u: r.updates(g.Name), x: GroupExplanation{Group: g.Name}, serving: map[*drover.Job]*board{}}
	s.sort(allocs)
	s.begin(allocs)
	s.base = r.baseOf(g)
	for i := range b.entries {
		s.fill(int32(i))
	}
	s.roll()
	s.resize()
	r.conclude(b, &s.x)
	r.queued[g.Name] += s.out.unproven
	r.groups = append(r.groups, s.x)
}

// sort finds each node's allocation, and ends those that have no business where they are.
func (s *systemRun) sort(allocs []*drover.Allocation) {
	s.states = map[string]*onNode{}
	once := s.job.EndsByItself()
	for _, a := range allocs {
		n := s.states[a.NodeID]
		if n == nil {
			n = &onNode{failures: map[uint64]int{}}
			s.states[a.NodeID] = n
		}
		switch {
		case a.ClientTerminal():
			if endedItself(a) {
				n.failures[a.Version()]++
			}
			n.remember(a)
		case s.away(&sorted{}, s.b.group, a):
			n.live = a
			s.u.Ignore++
		case s.lost(a.NodeID):
			s.stop(a, whyLost, drover.AllocClientLost)
			s.u.Stop++
		case a.ServerTerminal():
			if once {
				n.remember(a)
			}
		case isTrue(a.DesiredTransition.Migrate):
			s.end(a, whyNotOnNode)
			s.u.Stop++
			if once {
				n.remember(a)
			}
		case n.live != nil || !s.mayRemain(a):
			s.end(a, whyNotNeeded)
			s.u.Stop++
		default:
			n.live = a
			if s.b.entryOf(a.NodeID) < 0 {
				s.remain(a)
			}
		}
	}
}

// endedItself reports whether an allocation ended, however, without being told to. A system job's should not.
func endedItself(a *drover.Allocation) bool {
	return a.ClientTerminal() && a.ClientStatus != drover.AllocClientLost && !a.ServerTerminal()
}

func (n *onNode) remember(a *drover.Allocation) {
	if n.previous == nil || a.CreateIndex > n.previous.CreateIndex {
		n.previous = a
	}
}

// mayRemain reports whether a running allocation still belongs on its node: an ineligible node keeps what it has, one
// that the job's constraints refuse does not.
func (s *systemRun) mayRemain(a *drover.Allocation) bool {
	g := s.b.group
	if g.Count != nil && *g.Count == 0 {
		return false
	}
	return s.b.entryOf(a.NodeID) >= 0 || s.mayStay(s.node(a.NodeID), g)
}

// remain updates in place what runs on a node that takes no new allocations, and leaves the rest alone: who keeps a node
// out of scheduling, or a drain away from system jobs, wants what is there to go on. It is updated when the node is
// eligible again.
func (s *systemRun) remain(a *drover.Allocation) {
	if s.updateOf(a, s.b.group) == updateInPlace {
		s.changeInPlace(a)
		s.u.InPlaceUpdate++
		return
	}
	s.u.Ignore++
}

// fill places on a node that has no allocation of the group, and looks at the one that it has.
func (s *systemRun) fill(i int32) {
	id := s.nodeOf(i)
	n := s.states[id]
	p := placement{name: allocName(s.job, s.b.group, 0)}
	if n != nil && n.live != nil {
		s.out.total++
		s.see(i, n.live)
		return
	}
	if n != nil {
		p.previous = n.previous
	}
	p.job = s.servingVersion(&changes{group: s.b.group, base: s.base}, p.previous)
	if p.previous != nil && s.deployments.abandonedCanary(p.previous) {
		p.job = s.base // it took the place of what served, and failed
	}
	rule := s.mayFill(id, p.job)
	if rule == fillServing && s.changeOf(p.job, s.b.group) == updateInPlace {
		rule = fillPlain // there is nothing to prove: the next look would take it over in place
	}
	if rule != fillServing {
		p.job = nil
	}
	if rule == fillNot || p.previous != nil && s.rests(n, cmp.Or(p.job, s.job)) {
		s.u.Ignore++
		s.out.total++
		return
	}
	p.canary = rule == fillCanary
	switch {
	case rule == fillServing:
		s.out.total++ // it waits for the version as what runs elsewhere does
		if s.serve(id, p) {
			s.u.Place++
		}
	case s.allocateOn(s.b, i, p, &s.x):
		s.filled(p)
	default:
		s.unfilled(i, p)
	}
}

// unfilled counts a node without room for what it should have.
func (s *systemRun) unfilled(i int32, p placement) {
	c := &s.b.stage.nodes[s.b.entries[i].cand]
	replaced := p.previous != nil && s.older(p.previous) && p.previous.ServerTerminal()
	if replaced || c.evict != nil && c.evict.awaited != (drover.Capacity{}) {
		s.out.total++ // its older version was stopped to make room, or others are evicted for it
		s.out.pending++
	} else {
		s.out.roomless++
	}
}

// filled counts what fill placed.
func (s *systemRun) filled(p placement) {
	s.out.total++
	s.out.pending++
	if p.canary {
		s.out.canaries++
		s.u.Canary++
	} else {
		s.u.Place++
	}
	if s.job.EndsByItself() && p.previous != nil && !p.previous.ServerTerminal() {
		s.stop(p.previous, whyUpdating, "") // the work that it did has changed
	}
}

// rests reports whether a node whose allocation ended gets none of version j now: the work of a sysbatch job was done, or
// a failing system job waits.
func (s *systemRun) rests(n *onNode, j *drover.Job) bool {
	a := n.previous
	if s.job.EndsByItself() {
		return s.worked(a)
	}
	forced := isTrue(a.DesiredTransition.ForceReschedule) || isTrue(a.DesiredTransition.Reschedule)
	same := a.Job != nil && a.Job.Version == j.Version && a.Job.CreateIndex == j.CreateIndex
	if !endedItself(a) || !same || forced || s.asked(a.NodeID) {
		return false
	}
	if j == s.job && (s.deployments.halted() || s.deployments.id() != "" && a.DeploymentID == s.deployments.id()) {
		return true // the roll-out has failed, or is about to
	}
	delay := systemBackoff
	for range min(n.failures[j.Version]-1, 16) {
		delay = min(2*delay, systemBackoffMaximum)
	}
	due := failedAt(a).Add(delay)
	if due.After(s.now) {
		s.wake(due, drover.TriggerRetryFailedAlloc, "created for delayed replacement of a failed system allocation")
		return true
	}
	return false
}

// worked reports whether a sysbatch job has done on a node what it does now, however that ended, and whoever stopped it.
// What was lost with its node, or evicted for others, has not.
func (s *systemRun) worked(a *drover.Allocation) bool {
	if a.ClientStatus == drover.AllocClientLost || a.DesiredStatus == drover.AllocDesiredEvict {
		return false
	}
	return s.updateOf(a, s.b.group) != updateDestructive
}

// asked reports whether the evaluation comes from somebody who looks at the job or the node, and not from what its own
// allocations did: that may start again what failed, without a loop.
func (s *systemRun) asked(nodeID string) bool {
	e := s.in.Eval
	return e.TriggeredBy == drover.TriggerJobRegister || e.TriggeredBy == drover.TriggerNodeUpdate && e.NodeID == nodeID
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
