package reconcile

import (
	"cmp"
	"iter"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/optional"
)

// A failed system allocation is replaced on its node after a time that doubles with each failure there.
const (
	systemBackoff        = 30 * time.Second
	systemBackoffMaximum = time.Hour
)

// Sites are the nodes that can run a group of a system job, and how an allocation is put on one. Inside, a node is known
// by its number, from 0 to Len()-1.
type Sites interface {
	Len() int
	NodeID(i int) string
	Find(nodeID string) int // -1 = the node cannot run the group
	// Place puts an allocation of the job's own version on a node; false = there is no room.
	Place(i int, p Placement) bool
	// PlaceServing puts an allocation of p.Job on a node, as that version wants it; false = it cannot, or has no room.
	PlaceServing(nodeID string, p Placement) bool
	// FitsInstead reports whether the group would fit on a's node once a ended.
	FitsInstead(a *drover.Allocation) bool
	// Awaited reports whether others are being evicted on the node for the group.
	Awaited(i int) bool
}

// System handles a system or sysbatch job: one allocation of each group on every node that can run it. It asks sites for
// each group's nodes, and tells done, when the group is through, how many updates wait for its canaries.
func (r *Reconciler) System(
	allocs iter.Seq[*drover.Allocation], sites func(*drover.TaskGroup) Sites, done func(g *drover.TaskGroup, waiting int),
) {
	r.deployments.load(r)
	byGroup := r.byGroup(allocs)
	for _, g := range r.Job.TaskGroups {
		done(g, r.systemGroup(g, byGroup[g.Name], sites(g)))
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
	*Reconciler
	sites  Sites
	group  *drover.TaskGroup
	u      *drover.DesiredUpdates
	states map[string]*onNode
	out    rollOut
	base   *drover.Job // what serves while the job's version is not proven; nil if that is the job's version
}

// systemGroup returns how many updates wait for canaries.
func (r *Reconciler) systemGroup(g *drover.TaskGroup, allocs []*drover.Allocation, sites Sites) int {
	s := &systemRun{Reconciler: r, sites: sites, group: g, u: r.Updates(g.Name)}
	s.sort(allocs)
	s.begin(allocs)
	s.base = r.baseOf(g)
	for i := range sites.Len() {
		s.fill(i)
	}
	s.roll()
	s.resize()
	return s.out.unproven
}

// sort finds each node's allocation, and ends those that have no business where they are.
func (s *systemRun) sort(allocs []*drover.Allocation) {
	s.states = map[string]*onNode{}
	once := s.Job.EndsByItself()
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
		case s.away(&sorted{}, s.group, a):
			n.live = a
			s.u.Ignore++
		case s.Lost(a.NodeID):
			s.Lose(a)
			s.u.Stop++
		case a.ServerTerminal():
			if once {
				n.remember(a)
			}
		case optional.Value(a.DesiredTransition.Migrate):
			s.End(a, draft.WhyNotOnNode)
			s.u.Stop++
			if once {
				n.remember(a)
			}
		case n.live != nil || !s.mayRemain(a):
			s.End(a, draft.WhyNotNeeded)
			s.u.Stop++
		default:
			n.live = a
			if s.sites.Find(a.NodeID) < 0 {
				s.remain(a)
			}
		}
	}
}

// endedItself reports whether an allocation ended, however, without being told to. A system job's should not.
func endedItself(a *drover.Allocation) bool {
	return a.ClientTerminal() && a.ClientStatus != drover.AllocClientLost && !a.ServerTerminal()
}

// remember keeps the allocation if it was created after the one that is remembered.
func (n *onNode) remember(a *drover.Allocation) {
	if n.previous == nil || a.CreateIndex > n.previous.CreateIndex {
		n.previous = a
	}
}

// mayRemain reports whether a running allocation still belongs on its node: an ineligible node keeps what it has, one
// that the job's constraints refuse does not.
func (s *systemRun) mayRemain(a *drover.Allocation) bool {
	g := s.group
	if g.Count != nil && *g.Count == 0 {
		return false
	}
	return s.sites.Find(a.NodeID) >= 0 || s.mayStay(a, g)
}

// remain updates in place what runs on a node that takes no new allocations, and leaves the rest alone. Whoever keeps a node
// out of scheduling, or a drain away from system jobs, wants what is there to go on. It is updated when the node is eligible
// again.
func (s *systemRun) remain(a *drover.Allocation) {
	if s.updateOf(a, s.group) == updateInPlace {
		s.ChangeInPlace(a)
		s.u.InPlaceUpdate++
		return
	}
	s.u.Ignore++
}

// fill places on a node that has no allocation of the group, and looks at the one that it has.
func (s *systemRun) fill(i int) {
	id := s.sites.NodeID(i)
	n := s.states[id]
	p := Placement{Name: drover.AllocationName(s.Job.ID, s.group.Name, 0)}
	if n != nil && n.live != nil {
		s.out.total++
		s.see(i, n.live)
		return
	}
	if n != nil {
		p.Previous = n.previous
	}
	p.Job = s.servingVersion(s.base, p.Previous)
	if p.Previous != nil && s.deployments.abandonedCanary(p.Previous) {
		p.Job = s.base // it took the place of what served, and failed
	}
	rule := s.mayFill(id, p.Job)
	if rule == fillServing && s.changeOf(p.Job, s.group) == updateInPlace {
		rule = fillPlain // there is nothing to prove: the next look would take it over in place
	}
	if rule != fillServing {
		p.Job = nil
	}
	if rule == fillNot || p.Previous != nil && s.rests(n, cmp.Or(p.Job, s.Job)) {
		s.u.Ignore++
		s.out.total++
		return
	}
	p.Canary = rule == fillCanary
	switch {
	case rule == fillServing:
		s.out.total++ // it waits for the version as what runs elsewhere does
		if s.sites.PlaceServing(id, p) {
			s.u.Place++
		}
	case s.sites.Place(i, p):
		s.filled(p)
	default:
		s.unfilled(i, p)
	}
}

// unfilled counts a node without room for what it should have.
func (s *systemRun) unfilled(i int, p Placement) {
	replaced := p.Previous != nil && s.older(p.Previous) && p.Previous.ServerTerminal()
	if replaced || s.sites.Awaited(i) {
		s.out.total++ // its older version was stopped to make room, or others are evicted for it
		s.out.pending++
	} else {
		s.out.roomless++
	}
}

// filled counts what fill placed.
func (s *systemRun) filled(p Placement) {
	s.out.total++
	s.out.pending++
	if p.Canary {
		s.out.canaries++
		s.u.Canary++
	} else {
		s.u.Place++
	}
	if s.Job.EndsByItself() && p.Previous != nil && !p.Previous.ServerTerminal() {
		s.Stop(p.Previous, draft.WhyUpdating) // the work that it did has changed
	}
}

// rests reports whether a node whose allocation ended gets none of version j now: the work of a sysbatch job was done, or
// a failing system job waits.
func (s *systemRun) rests(n *onNode, j *drover.Job) bool {
	a := n.previous
	if s.Job.EndsByItself() {
		return s.worked(a)
	}
	forced := optional.Value(a.DesiredTransition.ForceReschedule) || optional.Value(a.DesiredTransition.Reschedule)
	same := a.Job != nil && a.Job.Version == j.Version && a.Job.CreateIndex == j.CreateIndex
	if !endedItself(a) || !same || forced || s.asked(a.NodeID) {
		return false
	}
	if j == s.Job && (s.deployments.halted() || s.deployments.id() != "" && a.DeploymentID == s.deployments.id()) {
		return true // the roll-out has failed, or is about to
	}
	delay := systemBackoff
	for range min(n.failures[j.Version]-1, 16) {
		delay = min(2*delay, systemBackoffMaximum)
	}
	due := failedAt(a).Add(delay)
	if due.After(s.Now) {
		s.Wake(due, drover.TriggerRetryFailedAlloc, "created for delayed replacement of a failed system allocation")
		return true
	}
	return false
}

// worked reports whether a sysbatch job has done on a node what it does now, however that ended, and whoever stopped it.
// What was lost with its node, or evicted for others, has not. Nor has a job of the same name that was purged: it is forgotten.
func (s *systemRun) worked(a *drover.Allocation) bool {
	purged := a.Job != nil && a.Job.CreateIndex != s.Job.CreateIndex
	if purged || a.ClientStatus == drover.AllocClientLost || a.DesiredStatus == drover.AllocDesiredEvict {
		return false
	}
	return s.updateOf(a, s.group) != updateDestructive
}

// asked reports whether somebody who looks at the job or the node made the evaluation, and not what its own allocations did.
// Such an evaluation may start again what failed, without a loop.
func (s *systemRun) asked(nodeID string) bool {
	e := s.Eval
	return e.TriggeredBy == drover.TriggerJobRegister || e.TriggeredBy == drover.TriggerNodeUpdate && e.NodeID == nodeID
}
