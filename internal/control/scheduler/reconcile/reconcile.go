package reconcile

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/optional"
)

// Changes is what a group needs, beside what is in the draft already.
type Changes struct {
	Group       *drover.TaskGroup
	Place       []Placement
	Destructive []*drover.Allocation // to replace by the new version
	Surge       []*drover.Allocation // of a warm pool: what to stop where the last placements find no room
	Avoid       []string             // nodes where the group failed lately
	Note        string               // for the explanation
	Held        int                  // wanted, but put off to a time
	Kept        []*drover.Allocation // what stays after the plan

	base *drover.Job // the version that serves while the job's own is not proven; nil if that serves
}

// Placement is an allocation to make.
type Placement struct {
	Name        string
	Previous    *drover.Allocation // that it replaces, or nil
	Rescheduled bool               // Previous failed: keep away from where it failed
	Canary      bool
	Fresh       bool        // another version: the chain of reschedules begins anew
	Job         *drover.Job // an older version, which it is to run; nil for the job's own
}

// Groups compares the allocations of a service or batch job with what each of its groups should have, in the job's order.
// What stops or changes in place is in the draft afterwards; what is to be placed is returned.
func (r *Reconciler) Groups(allocs iter.Seq[*drover.Allocation]) []*Changes {
	r.deployments.load(r)
	byGroup := r.byGroup(allocs)
	var all []*Changes
	for _, g := range r.Job.TaskGroups {
		if g.Pool != nil {
			all = append(all, r.reconcilePool(g, byGroup[g.Name]))
		} else {
			all = append(all, r.reconcile(g, byGroup[g.Name]))
		}
	}
	return all
}

// byGroup sorts a job's allocations by group, and ends those whose group is no longer in the job.
func (r *Reconciler) byGroup(allocs iter.Seq[*drover.Allocation]) map[string][]*drover.Allocation {
	out := map[string][]*drover.Allocation{}
	for a := range allocs {
		if r.Job.Group(a.TaskGroup) == nil {
			r.dropRemoved(a)
			continue
		}
		out[a.TaskGroup] = append(out[a.TaskGroup], a)
	}
	return out
}

// dropRemoved ends an allocation whose group is no longer in the job. A claimed runner is its claimer's: it goes on.
func (r *Reconciler) dropRemoved(a *drover.Allocation) {
	if a.ClientTerminal() || a.Claim != nil && !r.Lost(a.NodeID) {
		return
	}
	if !a.ServerTerminal() || r.Lost(a.NodeID) {
		r.End(a, draft.WhyNotNeeded)
		r.Updates(a.TaskGroup).Stop++
	}
}

// reconcile compares what a group has with what it should have. Canaries that wait for promotion are a set beside the
// group: they neither fill its count nor end what fills it (DEPLOYMENTS.md).
func (r *Reconciler) reconcile(g *drover.TaskGroup, allocs []*drover.Allocation) *Changes {
	c := &Changes{Group: g}
	s, canaries := r.classify(g, allocs)
	u := r.Updates(g.Name)
	for _, a := range s.abandoned {
		r.End(a, draft.WhyNotNeeded)
		u.Stop++
	}
	r.reconnect(g, s, allocs, u)
	r.reconnect(g, canaries, allocs, u)
	keep := r.stopExtra(s, g.DesiredCount(), u)
	destructive := r.updateInPlace(g, keep, u)
	r.beginDeployment(g, s, keep, destructive, u)
	c.base = r.serving(g, s)
	r.replace(c, s, keep, u)
	waiting := r.placeCanaries(c, canaries, destructive, u)
	c.Destructive = idleFirst(destructive)[:r.updateLimit(g, keep, len(c.Place)+r.awaited(g, s, keep, destructive), len(destructive))]
	r.scheduleLater(append(s.later, canaries.later...), append(slices.Clone(keep), waiting...), c.Destructive, u)
	u.DestructiveUpdate += uint64(len(c.Destructive))
	u.Ignore += uint64(len(keep)+len(s.done)+len(waiting)-len(c.Destructive)) - u.InPlaceUpdate
	c.Kept = slices.Concat(keep, waiting)
	// Nobody looks at a deployment again because of a group that is no part of it, so that does not hold it up.
	changes := len(c.Place)+len(destructive)+len(s.later)+len(canaries.later)+len(s.migrate) > 0 || u.InPlaceUpdate > 0
	if changes && r.deployments.state(g.Name) != nil {
		r.deployments.busy = true
	}
	return c
}

// stopExtra stops what is more than count and returns what stays. Failed and unhealthy ones go first, then those that nobody
// found healthy, those of older versions, and the highest indexes: what serves is not stopped for what may not. Of two with
// one name, which a promoted canary leaves, one always goes.
func (r *Reconciler) stopExtra(s *sorted, count int, u *drover.DesiredUpdates) []*drover.Allocation {
	keep := s.keep()
	newest := map[string]*drover.Allocation{}
	for _, a := range keep {
		if other := newest[a.Name]; other == nil || outlasts(a, other) {
			newest[a.Name] = a
		}
	}
	keep = slices.DeleteFunc(keep, func(a *drover.Allocation) bool {
		if newest[a.Name] == a {
			return false
		}
		r.End(a, draft.WhyNotNeeded)
		u.Stop++
		return true
	})
	extra := min(len(keep), len(keep)+len(s.done)-count)
	if extra <= 0 {
		return keep
	}
	failed := map[*drover.Allocation]bool{}
	for _, a := range s.held {
		failed[a] = true
	}
	slices.SortFunc(keep, func(x, y *drover.Allocation) int {
		return cmp.Or(
			first(failed[x], failed[y]),
			first(x.DeploymentStatus.IsUnhealthy(), y.DeploymentStatus.IsUnhealthy()),
			cmp.Compare(serviceOf(x), serviceOf(y)),
			first(r.older(x), r.older(y)),
			cmp.Compare(y.Index(), x.Index()),
			cmp.Compare(x.ID, y.ID),
		)
	})
	for _, a := range keep[:extra] {
		r.End(a, draft.WhyNotNeeded)
		u.Stop++
	}
	return keep[extra:]
}

// outlasts reports which of two with one name stays: what runs before what failed, then the newer version, of one version what
// serves, then the newer.
func outlasts(x, y *drover.Allocation) bool {
	if x.ClientTerminal() != y.ClientTerminal() {
		return y.ClientTerminal()
	}
	return cmp.Or(cmp.Compare(x.Version(), y.Version()), cmp.Compare(serviceOf(x), serviceOf(y)), cmp.Compare(x.CreateIndex, y.CreateIndex),
		cmp.Compare(x.ID, y.ID)) > 0
}

// first orders true before false.
func first(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// updateInPlace gives the new version to what can take it while running and returns what cannot, by index.
func (r *Reconciler) updateInPlace(g *drover.TaskGroup, keep []*drover.Allocation, u *drover.DesiredUpdates) []*drover.Allocation {
	var destructive []*drover.Allocation
	for _, a := range keep {
		switch r.updateOf(a, g) {
		case updateInPlace:
			if !a.ClientTerminal() { // a failed one gets the version when it is replaced
				u.InPlaceUpdate++
				r.ChangeInPlace(a)
			}
		case updateDestructive:
			destructive = append(destructive, a)
		case updateNone:
		}
	}
	slices.SortFunc(destructive, byIndex)
	return destructive
}

// byIndex orders by the index in the allocation's name; the id decides between equal ones, so that the plan is always
// the same.
func byIndex(x, y *drover.Allocation) int {
	return cmp.Or(cmp.Compare(x.Index(), y.Index()), cmp.Compare(x.ID, y.ID))
}

// scheduleLater makes the follow-ups for failures whose time has not come.
func (r *Reconciler) scheduleLater(later []laterFailure, keep, replaced []*drover.Allocation, u *drover.DesiredUpdates) {
	slices.SortFunc(later, func(x, y laterFailure) int {
		return cmp.Or(y.at.Compare(x.at), cmp.Compare(x.alloc.ID, y.alloc.ID))
	})
	if len(later) == 0 {
		return
	}
	stays := map[*drover.Allocation]bool{}
	for _, a := range keep {
		stays[a] = true
	}
	for _, a := range replaced {
		stays[a] = false
	}
	var last time.Time
	followUp := ""
	for _, l := range later { // the latest first: it takes those shortly before it along
		if !stays[l.alloc] {
			continue
		}
		u.RescheduleLater++
		if last.IsZero() || last.Sub(l.at) > draft.FollowUpWindow {
			followUp = r.Wake(l.at, drover.TriggerRetryFailedAlloc, "created for delayed rescheduling")
			last = l.at
		}
		r.Await(l.alloc, followUp)
	}
}

// replace fills what is missing: first in place of failed, lost and migrating allocations, then with new ones. What
// of these is not replaced is stopped as well. While the job's version is not proven, what is replaced of older ones comes
// back as the version that serves, and no new one is placed beyond that version's count.
func (r *Reconciler) replace(c *Changes, s *sorted, keep []*drover.Allocation, u *drover.DesiredUpdates) {
	count := c.Group.DesiredCount()
	want := count
	if c.base != nil {
		want = min(want, c.base.Group(c.Group.Name).DesiredCount())
	}
	missing := max(want-len(keep)-len(s.done), 0)
	free := newNames(keep, s.done)
	alone := c.base == nil && r.deployments.unproven(c.Group.Name)
	add := func(previous *drover.Allocation, failed bool) bool {
		if missing == 0 || alone && previous != nil && r.older(previous) {
			return false // of an earlier job with this id: an unproven version replaces only its own
		}
		missing--
		p := Placement{Previous: previous, Rescheduled: failed, Job: r.servingVersion(c.base, previous)}
		wanted := -1
		if previous != nil {
			wanted = previous.Index()
		}
		p.Name = drover.AllocationName(r.Job.ID, c.Group.Name, free.take(wanted, count))
		c.Place = append(c.Place, p)
		return true
	}
	r.fillIn(s, add, u)
	if c.base == nil && (r.deployments.halted() || r.deployments.unproven(c.Group.Name)) {
		return
	}
	for missing > 0 && add(nil, false) {
		u.Place++
	}
}

// fillIn replaces what failed, was lost, is away or has to move, as long as add, which is told whether it failed, has
// places; what is not replaced is stopped.
func (r *Reconciler) fillIn(s *sorted, add func(previous *drover.Allocation, failed bool) bool, u *drover.DesiredUpdates) {
	for _, a := range s.reschedule {
		if add(a, true) {
			u.RescheduleNow++
		} else {
			r.End(a, draft.WhyNotNeeded)
			u.Stop++
		}
	}
	for _, a := range s.lost {
		r.Lose(a)
		add(a, false)
	}
	for _, a := range s.away {
		if a.NextAllocation == "" {
			add(a, false)
		}
	}
	for _, a := range s.migrate {
		if add(a, false) {
			r.End(a, draft.WhyMigrating)
			u.Migrate++
		} else {
			r.End(a, draft.WhyNotNeeded)
			u.Stop++
		}
	}
}

// beginDeployment starts a deployment when a version comes to run, also again after all of it was drained or evicted. It does so
// too when allocations of older versions have come back. It hands updates in place to it. What failed and stays so is
// no part of it.
func (r *Reconciler) beginDeployment(g *drover.TaskGroup, s *sorted, keep, destructive []*drover.Allocation, u *drover.DesiredUpdates) {
	if !r.rolls(g) {
		return
	}
	if !s.ranVersion || len(destructive) > 0 || u.InPlaceUpdate > 0 {
		canaries := 0
		if len(destructive) > 0 {
			canaries = g.Update.Canary
		}
		r.deployments.begin(r, g, g.DesiredCount()-resting(keep, destructive), canaries, true)
	}
	if r.deployments.state(g.Name) == nil || u.InPlaceUpdate == 0 {
		return
	}
	for _, node := range slices.Sorted(maps.Keys(r.Plan.NodeAllocation)) {
		for _, a := range r.Plan.NodeAllocation[node] {
			if a.TaskGroup == g.Name && a.Job == r.Job && a.DeploymentID != r.deployments.id() {
				a.DeploymentID, a.DeploymentStatus = r.deployments.id(), nil
			}
		}
	}
}

// resting counts the failed allocations that neither run nor are updated.
func resting(keep, destructive []*drover.Allocation) int {
	n := 0
	for _, a := range keep {
		if a.ClientTerminal() && !slices.Contains(destructive, a) {
			n++
		}
	}
	return n
}

// awaited counts what does not serve and is left to do so. That is what failed and is to be replaced at its time, other
// than by an update, and what the version takes over in place though nobody found it healthy.
func (r *Reconciler) awaited(g *drover.TaskGroup, s *sorted, keep, destructive []*drover.Allocation) int {
	if len(destructive) == 0 {
		return 0
	}
	later := map[*drover.Allocation]bool{}
	for _, l := range s.later {
		later[l.alloc] = true
	}
	n := 0
	for _, a := range keep {
		switch kind := r.updateOf(a, g); {
		case kind == updateDestructive:
		case later[a], kind == updateInPlace && !a.ClientTerminal() && serviceOf(a) != servesWell:
			n++
		}
	}
	return n
}

// updateLimit returns how many destructive updates may begin now, while some are missing.
func (r *Reconciler) updateLimit(g *drover.TaskGroup, keep []*drover.Allocation, missing, wanted int) int {
	if !r.rolls(g) {
		return wanted
	}
	state := r.deployments.state(g.Name)
	if r.deployments.halted() || state.Unpromoted() {
		return 0
	}
	limit := optional.Value(g.Update.MaxParallel) - missing
	for _, a := range keep {
		if state == nil || a.DeploymentID != r.deployments.id() {
			continue
		}
		if a.DeploymentStatus.IsUnhealthy() {
			return 0
		}
		if !a.DeploymentStatus.Judged() {
			limit--
		}
	}
	return min(max(limit, 0), wanted)
}
