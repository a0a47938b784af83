package scheduler

import (
	"drover"
)

// deployments follows the roll-out of the job's current version. Health is counted by others; here allocations are
// placed up to what health allows.
type deployments struct {
	byID    map[string]*drover.Deployment
	current *drover.Deployment // of the job's current version, whatever its status; nil if none
	created *drover.Deployment // by this plan
	plan    *drover.Plan
	busy    bool // a group of it still changes
}

// load reads the job's deployments and cancels those of other versions.
func (d *deployments) load(r *run) {
	d.plan = r.plan
	d.byID = map[string]*drover.Deployment{}
	for x := range r.snapshot.DeploymentsByJob(r.in.Eval.Namespace, r.in.Eval.JobID) {
		d.byID[x.ID] = x
		switch {
		case r.job == nil:
		case x.JobVersion == r.job.Version && x.JobCreateIndex == r.job.CreateIndex:
			if d.current == nil || x.CreateIndex > d.current.CreateIndex {
				d.current = x
			}
		case x.Active() && !r.job.Stopped():
			d.setStatus(x, drover.DeploymentCancelled, "Cancelled due to newer version of job")
		}
	}
}

func (d *deployments) setStatus(x *drover.Deployment, status, why string) {
	d.plan.DeploymentUpdates = append(d.plan.DeploymentUpdates, &drover.DeploymentStatusUpdate{
		DeploymentID: x.ID, Status: status, StatusDescription: why,
	})
}

// cancelActive cancels whatever is under way.
func (d *deployments) cancelActive(why string) {
	for _, id := range sortedKeys(d.byID) {
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

// halted reports whether the current version must not spread: its deployment failed, was cancelled or is paused.
func (d *deployments) halted() bool {
	if d.current == nil {
		return false
	}
	switch d.current.Status {
	case drover.DeploymentFailed, drover.DeploymentCancelled, drover.DeploymentPaused:
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
func (r *run) rolls(g *drover.TaskGroup) bool {
	return r.job.Type == drover.JobTypeService && g.Pool == nil && g.Update != nil && value(g.Update.MaxParallel) > 0
}

// begin makes the group part of a new deployment, unless the version has had one.
func (d *deployments) begin(r *run, g *drover.TaskGroup, canaries int) {
	if d.current != nil || desiredCount(g) == 0 {
		return
	}
	if d.created == nil {
		j := r.job
		d.created = &drover.Deployment{
			ID: r.ids.New(), Namespace: j.Namespace, JobID: j.ID, JobVersion: j.Version, JobModifyIndex: j.ModifyIndex,
			JobSpecModifyIndex: j.JobModifyIndex, JobCreateIndex: j.CreateIndex, Status: drover.DeploymentRunning,
			StatusDescription: "Deployment is running", TaskGroups: map[string]*drover.DeploymentState{},
			CreateTime: r.now.UnixNano(), ModifyTime: r.now.UnixNano(),
		}
	}
	u := g.Update
	s := &drover.DeploymentState{
		AutoRevert: u.AutoRevert, AutoPromote: u.AutoPromote, ProgressDeadline: value(u.ProgressDeadline),
		DesiredTotal: desiredCount(g), DesiredCanaries: canaries,
	}
	if s.ProgressDeadline > 0 {
		s.RequireProgressBy = r.now.Add(s.ProgressDeadline)
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
func (d *deployments) finish(r *run) {
	r.plan.Deployment = d.created
	if d.created != nil || d.busy || d.current == nil || d.current.Status != drover.DeploymentRunning || r.job.Stopped() {
		return
	}
	for _, s := range d.current.TaskGroups {
		if s.HealthyAllocs < max(s.DesiredTotal, s.DesiredCanaries) || s.DesiredCanaries > 0 && !s.Promoted {
			return
		}
	}
	d.setStatus(d.current, drover.DeploymentSuccessful, "Deployment completed successfully")
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
