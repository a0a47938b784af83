package reconcile

import (
	"github.com/drover-project/drover"
)

// placeCanaries brings up what has to prove the new version, beside the old ones and under their names. It replaces
// canaries that failed, as the policy allows, and those that lose their node. It returns those that stay.
func (r *Reconciler) placeCanaries(c *Changes, s *sorted, destructive []*drover.Allocation, u *drover.DesiredUpdates) []*drover.Allocation {
	state := r.deployments.state(c.Group.Name)
	if state == nil || state.Promoted || state.DesiredCanaries == 0 {
		return nil
	}
	waiting := s.keep()
	used := newNames(waiting)
	missing := state.DesiredCanaries - len(waiting)
	count := max(c.Group.DesiredCount(), state.DesiredCanaries)
	replace := func(a *drover.Allocation, failed bool) bool {
		if missing <= 0 {
			return false
		}
		missing--
		name := drover.AllocationName(r.Job.ID, c.Group.Name, used.take(a.Index(), count))
		c.Place = append(c.Place, Placement{Name: name, Previous: a, Rescheduled: failed, Canary: true})
		return true
	}
	r.fillIn(s, replace, u)
	for ; missing > 0 && !r.deployments.halted(); missing-- {
		c.Place = append(c.Place, Placement{Name: r.canaryName(c.Group, used, destructive), Canary: true})
		u.Canary++
	}
	return waiting
}

// canaryName takes the name of an allocation that is to be updated and has no canary yet, else the lowest free one.
func (r *Reconciler) canaryName(g *drover.TaskGroup, used *names, destructive []*drover.Allocation) string {
	index := -1
	for _, a := range destructive {
		if i := a.Index(); !used.used[i] {
			index = i
			break
		}
	}
	return drover.AllocationName(r.Job.ID, g.Name, used.take(index, max(index+1, g.DesiredCount())))
}

// baseOf returns the newest stable version while canaries of the job's own version wait, or since it failed. It is nil if
// there is none, and when the job's own version serves.
func (r *Reconciler) baseOf(g *drover.TaskGroup) *drover.Job {
	if !r.deployments.unproven(g.Name) {
		return nil
	}
	for _, v := range r.state.JobVersions(r.Job.Namespace, r.Job.ID) {
		if v.Stable && r.mayServe(v, g) {
			return v
		}
	}
	return nil
}

// serving is baseOf, or if there is no stable version the newest older one that runs.
func (r *Reconciler) serving(g *drover.TaskGroup, s *sorted) *drover.Job {
	newest := r.baseOf(g)
	if newest != nil || !r.deployments.unproven(g.Name) {
		return newest
	}
	for _, list := range [][]*drover.Allocation{s.live, s.held, s.reschedule, s.lost, s.migrate, s.away} {
		for _, a := range list {
			if r.mayServe(a.Job, g) && (newest == nil || a.Job.Version > newest.Version) {
				newest = a.Job
			}
		}
	}
	return newest
}

// mayServe reports whether the version is an older one of the job that has the group.
func (r *Reconciler) mayServe(v *drover.Job, g *drover.TaskGroup) bool {
	return v != nil && !v.Stop && v.Version < r.Job.Version && v.CreateIndex == r.Job.CreateIndex && v.Group(g.Name) != nil
}

// servingVersion is the version that a replacement runs: the serving one, for what ran an older version than the job's.
// It is nil for the job's own.
func (r *Reconciler) servingVersion(base *drover.Job, previous *drover.Allocation) *drover.Job {
	if previous != nil && previous.Job != nil && !r.older(previous) {
		return nil // it runs the job's own version, which it took over in place
	}
	return base
}
