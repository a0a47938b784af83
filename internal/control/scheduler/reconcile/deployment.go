package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
)

// deployments follows the roll-out of the job's current version. Health is counted by others; here allocations are
// placed up to what health allows.
type deployments struct {
	byID    map[string]*drover.Deployment
	current *drover.Deployment // of the job's current version, whatever its status; nil if none
	created *drover.Deployment // by this plan
	resized *drover.Deployment // current, with other totals; nil if they stay
	plan    *drover.Plan
	proven  bool      // one of the current version was successful: a later one, begun from nothing, does not take that back
	busy    bool      // a group of it still changes
	owed    time.Time // when the first failure is due that is not replaced while it is under way; zero = none
}

// load reads the job's deployments and cancels those of other versions.
func (d *deployments) load(r *Reconciler) {
	d.plan = r.Plan
	d.byID = map[string]*drover.Deployment{}
	for x := range r.state.DeploymentsByJob(r.Eval.Namespace, r.Eval.JobID) {
		d.byID[x.ID] = x
		switch {
		case r.Job == nil:
		case x.JobVersion == r.Job.Version && x.JobCreateIndex == r.Job.CreateIndex:
			d.proven = d.proven || x.Status == drover.DeploymentSuccessful
			if d.current == nil || x.CreateIndex > d.current.CreateIndex {
				d.current = x
			}
		case x.Active() && !r.Job.Stopped():
			d.setStatus(x, drover.DeploymentCancelled, "Cancelled due to newer version of job")
		}
	}
}

// setStatus puts a change of status into the plan; the state changes when the plan is committed.
func (d *deployments) setStatus(x *drover.Deployment, status, why string) {
	d.plan.DeploymentUpdates = append(d.plan.DeploymentUpdates, &drover.DeploymentStatusUpdate{
		DeploymentID: x.ID, Status: status, StatusDescription: why,
	})
}

// cancelActive cancels whatever is under way.
func (d *deployments) cancelActive(why string) {
	for _, id := range slices.Sorted(maps.Keys(d.byID)) {
		if x := d.byID[id]; x.Active() {
			d.setStatus(x, drover.DeploymentCancelled, why)
		}
	}
}

// active returns the deployment that placements belong to, nil if none.
func (d *deployments) active() *drover.Deployment {
	switch {
	case d.created != nil:
		return d.created
	case d.current.Active():
		return d.current
	}
	return nil
}

// id is the active deployment's, "" if there is none.
func (d *deployments) id() string {
	if x := d.active(); x != nil {
		return x.ID
	}
	return ""
}

// halted reports whether the current version must not spread: its deployment failed, was cancelled or is paused. One that
// was proven before goes on: what failed then was the room for it.
func (d *deployments) halted() bool {
	if d.current == nil {
		return false
	}
	switch d.current.Status {
	case drover.DeploymentFailed:
		return !d.proven
	case drover.DeploymentCancelled, drover.DeploymentPaused:
		return true
	}
	return false
}

// state returns a group's state in the active deployment, nil if it has none.
func (d *deployments) state(group string) *drover.DeploymentState {
	if x := d.active(); x != nil {
		return x.TaskGroups[group]
	}
	return nil
}

// rolls reports whether changes of the group are rolled out by deployment.
func (r *Reconciler) rolls(g *drover.TaskGroup) bool {
	return r.Job.Type == drover.JobTypeService && g.Pool == nil && g.Update != nil && optional.Value(g.Update.MaxParallel) > 0
}

// unproven reports whether the job's version must not take over what runs of older ones: the group has canaries that
// were not promoted, or its deployment failed.
func (d *deployments) unproven(group string) bool {
	x := d.current
	if d.created != nil {
		x = d.created
	}
	if x == nil || x.TaskGroups[group] == nil {
		return false
	}
	s := x.TaskGroups[group]
	return s.Unpromoted() || x.Status == drover.DeploymentFailed && !d.proven
}

// lets reports whether the deployment that a failed allocation belongs to lets it be replaced. While it is under way, what
// failed after it had been healthy waits until it is over: the group is judged by those that were healthy. Once it has
// failed nothing of it is replaced: its version must not go on failing for ever.
//
// Nor is anything replaced of one whose progress deadline has passed. The leader fails it at that moment, and how many rounds
// there are must not depend on which of both looks first.
func (d *deployments) lets(a *drover.Allocation, now time.Time) bool {
	if d.current == nil || a.DeploymentID != d.current.ID {
		return true
	}
	switch {
	case d.current.Status == drover.DeploymentFailed:
		return d.proven
	case d.current.Status == drover.DeploymentRunning && late(d.current, now):
		return false
	case d.current.Active():
		return !a.DeploymentStatus.IsHealthy() || optional.Value(a.DesiredTransition.Reschedule) ||
			optional.Value(a.DesiredTransition.ForceReschedule)
	}
	return true
}

// late reports whether a group of the deployment is late.
func late(x *drover.Deployment, now time.Time) bool {
	for _, s := range x.TaskGroups {
		if s.Late(now) {
			return true
		}
	}
	return false
}

// owe remembers a failure that the deployment under way holds back.
func (d *deployments) owe(a *drover.Allocation, at time.Time) {
	if d.current.Active() && !d.waitingCanary(a) && (d.owed.IsZero() || at.Before(d.owed)) {
		d.owed = at
	}
}

// of returns the id of the newest deployment of that version which has the group, "" if there is none.
func (d *deployments) of(j *drover.Job, group string) string {
	var newest *drover.Deployment
	for _, x := range d.byID {
		if x.JobVersion == j.Version && x.JobCreateIndex == j.CreateIndex && x.TaskGroups[group] != nil &&
			(newest == nil || x.CreateIndex > newest.CreateIndex) {
			newest = x
		}
	}
	if newest == nil {
		return ""
	}
	return newest.ID
}

// begin makes the group part of a new deployment of total allocations, unless the version has had one. With again it
// may begin another after a successful one.
func (d *deployments) begin(r *Reconciler, g *drover.TaskGroup, total, canaries int, again bool) {
	again = again && d.current != nil && d.current.Status == drover.DeploymentSuccessful
	if d.current != nil && !again || total <= 0 {
		return
	}
	if d.created == nil {
		j := r.Job
		d.created = &drover.Deployment{
			ID: r.IDs.New(), Namespace: j.Namespace, JobID: j.ID, JobVersion: j.Version, JobModifyIndex: j.ModifyIndex,
			JobSpecModifyIndex: j.JobModifyIndex, JobCreateIndex: j.CreateIndex, EvalPriority: r.Eval.Priority, Status: drover.DeploymentRunning,
			StatusDescription: "Deployment is running", TaskGroups: map[string]*drover.DeploymentState{},
			CreateTime: r.Now.UnixNano(), ModifyTime: r.Now.UnixNano(),
		}
	}
	u := g.Update
	s := &drover.DeploymentState{
		AutoRevert: u.AutoRevert, AutoPromote: u.AutoPromote, ProgressDeadline: optional.Value(u.ProgressDeadline),
		DesiredTotal: total, DesiredCanaries: canaries,
	}
	d.created.TaskGroups[g.Name] = s
	if canaries > 0 {
		d.created.StatusDescription = "Deployment is running but requires manual promotion"
		if u.AutoPromote {
			d.created.StatusDescription = "Deployment is running pending automatic promotion"
		}
	}
}

// finish puts a new deployment into the plan, and ends one whose groups are all healthy and unchanged.
func (d *deployments) finish(r *Reconciler) {
	r.Plan.Deployment = cmp.Or(d.created, d.resized)
	if d.created != nil || d.busy || d.current == nil || d.current.Status != drover.DeploymentRunning || r.Job.Stopped() {
		return
	}
	for _, s := range cmp.Or(d.resized, d.current).TaskGroups {
		if s.HealthyAllocs < max(s.DesiredTotal, s.DesiredCanaries) || s.Unpromoted() {
			return
		}
	}
	d.setStatus(d.current, drover.DeploymentSuccessful, "Deployment completed successfully")
	if !d.owed.IsZero() {
		r.Wake(later(d.owed, r.Now.Add(rescheduleNowWindow)), drover.TriggerRetryFailedAlloc, "created for rescheduling after the deployment")
	}
}

func later(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

// abandonedCanary reports whether the allocation was a canary of a deployment that ended, or was replaced by another,
// without promotion.
func (d *deployments) abandonedCanary(a *drover.Allocation) bool {
	if a.DeploymentStatus == nil || !a.DeploymentStatus.Canary {
		return false
	}
	x := d.byID[a.DeploymentID]
	if x == nil {
		return false
	}
	s := x.TaskGroups[a.TaskGroup]
	if s == nil || s.Promoted {
		return false
	}
	return x != d.current || !x.Active()
}

// waitingCanary reports whether the allocation is a canary of the active deployment that was not promoted yet.
func (d *deployments) waitingCanary(a *drover.Allocation) bool {
	s := d.state(a.TaskGroup)
	return s != nil && !s.Promoted && a.DeploymentStatus != nil && a.DeploymentStatus.Canary && a.DeploymentID == d.id()
}
