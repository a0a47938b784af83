package fsm

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/progress"
)

// upsertDeployment stores a deployment whole, whatever it was before. Plans use planDeployment instead.
func (e *entry) upsertDeployment(c *command.UpsertDeployment) {
	if c.Deployment != nil {
		e.storeDeployment(c.Deployment, c.Time)
	}
	e.putEvals(c.Evals)
}

// storeDeployment stores a copy of spec. An existing deployment keeps its creation index and time.
func (e *entry) storeDeployment(spec *drover.Deployment, now int64) {
	d := *spec
	d.CreateIndex, d.CreateTime = e.index, now
	if old := e.txn.Deployment(d.ID); old != nil {
		d.CreateIndex, d.CreateTime = old.CreateIndex, old.CreateTime
	}
	d.ModifyIndex, d.ModifyTime = e.index, now
	e.putDeployment(&d)
}

// planDeployment stores a plan's deployment. Of one that is stored already it takes only how many allocations are wanted:
// the rest may have moved on since the plan was made.
func (e *entry) planDeployment(spec *drover.Deployment, now int64) {
	old := e.txn.Deployment(spec.ID)
	if old == nil {
		e.storeDeployment(spec, now)
		return
	}
	d := *old
	d.TaskGroups = maps.Clone(old.TaskGroups)
	for name, want := range spec.TaskGroups {
		if has := old.TaskGroups[name]; has != nil {
			s := *has
			s.DesiredTotal, s.DesiredCanaries = want.DesiredTotal, want.DesiredCanaries
			d.TaskGroups[name] = &s
		}
	}
	d.ModifyIndex, d.ModifyTime = e.index, now
	e.putDeployment(&d)
}

// changeDeployment sets the status. A successful deployment makes its job's version stable.
func (e *entry) changeDeployment(old *drover.Deployment, u *drover.DeploymentStatusUpdate, now int64) {
	d := *old
	d.Status, d.StatusDescription, d.ModifyIndex, d.ModifyTime = u.Status, u.StatusDescription, e.index, now
	if old.Status == drover.DeploymentPaused && d.Status == drover.DeploymentRunning {
		d.TaskGroups = maps.Clone(old.TaskGroups)
		for name, s := range old.TaskGroups {
			d.TaskGroups[name] = progress.Renewed(s, now)
		}
	}
	e.putDeployment(&d)
	if d.Status == drover.DeploymentSuccessful {
		// The version may have been forgotten meanwhile; then there is nothing to mark.
		_ = e.setJobStability(&command.SetJobStability{
			Namespace: d.Namespace, ID: d.JobID, Version: d.JobVersion, Stable: true,
		})
	}
}

// activeDeployment returns the deployment, which must not be over.
func (e *entry) activeDeployment(id string) (*drover.Deployment, error) {
	d := e.txn.Deployment(id)
	switch {
	case d == nil:
		return nil, drover.Errorf(drover.NotFound, "deployment not found")
	case !d.Active():
		return nil, drover.Errorf(drover.Conflict, "can't change terminal deployment %s: it is %s", id, d.Status)
	}
	return d, nil
}

// updateDeploymentStatus changes the status of an active deployment; c.Job, if given, is the version to return to.
// Errors: Invalid without an update, NotFound, Conflict if the deployment is over.
func (e *entry) updateDeploymentStatus(c *command.UpdateDeploymentStatus) error {
	if c.Update == nil {
		return drover.Errorf(drover.Invalid, "no deployment status")
	}
	d, err := e.activeDeployment(c.Update.DeploymentID)
	if err != nil {
		return err
	}
	e.changeDeployment(d, c.Update, c.Time)
	e.revertTo(c.Job, c.Time)
	e.putEvals(c.Evals)
	return nil
}

// revertTo stores an older version's content as the job's newest version, because version numbers only grow. The submit
// time becomes now. Nothing happens for nil, or if the job was purged meanwhile.
func (e *entry) revertTo(j *drover.Job, now int64) {
	if j == nil {
		return
	}
	if old := e.txn.Job(j.Namespace, j.ID); old != nil {
		spec := *j
		spec.SubmitTime = 0
		stored := e.storeJob(old, &spec, now)
		e.pruneOwn(stored, 0)
		e.keepSource(j, stored)
	}
}

// setAllocHealth sets allocations healthy or unhealthy; those of other deployments are skipped. Errors: NotFound,
// Conflict if the deployment is over. The deployment is read again before its status changes, because the counters have
// changed it.
func (e *entry) setAllocHealth(c *command.SetAllocHealth) error {
	d, err := e.activeDeployment(c.DeploymentID)
	if err != nil {
		return err
	}
	at := time.Unix(0, c.Time).UTC()
	for _, ids := range []struct {
		list    []string
		healthy bool
	}{{c.Healthy, true}, {c.Unhealthy, false}} {
		for _, id := range ids.list {
			old := e.txn.Allocation(id)
			if old == nil || old.DeploymentID != d.ID {
				continue
			}
			a := *old
			e.setHealth(&a, ids.healthy, at)
			a.ModifyIndex, a.ModifyTime = e.index, c.Time
			e.putAlloc(old, &a)
			e.countInDeployment(old, &a)
		}
	}
	if c.Update != nil {
		e.changeDeployment(e.txn.Deployment(d.ID), c.Update, c.Time)
	}
	e.revertTo(c.Job, c.Time)
	e.putEvals(c.Evals)
	return nil
}

// countInDeployment keeps the counters of the allocation's deployment, and its deadline.
func (e *entry) countInDeployment(old, a *drover.Allocation) {
	if a.DeploymentID == "" || !progress.Counts(old, a) {
		return
	}
	if next := progress.Counted(e.txn.Deployment(a.DeploymentID), old, a); next != nil {
		next.ModifyIndex, next.ModifyTime = e.index, a.ModifyTime
		e.putDeployment(next)
	}
}

// promoteDeployment promotes the canaries of the groups, of all groups if there are none given. Errors: NotFound,
// Invalid for an unknown group, Conflict if the deployment is over or a group has too few healthy canaries. All groups
// are checked before anything is stored. The progress deadline of a promoted group begins again.
func (e *entry) promoteDeployment(c *command.PromoteDeployment) error {
	old, err := e.activeDeployment(c.DeploymentID)
	if err != nil {
		return err
	}
	groups := c.Groups
	if groups == nil {
		groups = slices.Sorted(maps.Keys(old.TaskGroups))
	}
	d := *old
	d.TaskGroups = maps.Clone(old.TaskGroups)
	var canaries []string
	for _, g := range groups {
		s := old.TaskGroups[g]
		if s == nil {
			return drover.Errorf(drover.Invalid, "deployment has no group %q", g)
		}
		// Promoting a group again is no error and changes nothing.
		if s.Promoted {
			continue
		}
		if n := e.healthyCanaries(s); n < s.DesiredCanaries {
			return drover.Errorf(drover.Conflict, "Task group %q has %d/%d healthy allocations", g, n, s.DesiredCanaries)
		}
		next := *s
		if s.DesiredCanaries > 0 {
			next = *progress.Renewed(s, c.Time)
			canaries = append(canaries, s.PlacedCanaries...)
		}
		next.Promoted = true
		d.TaskGroups[g] = &next
	}
	d.ModifyIndex, d.ModifyTime = e.index, c.Time
	if d.Status == drover.DeploymentRunning && !progress.AwaitsPromotion(&d) {
		d.StatusDescription = "Deployment is running"
	}
	e.putDeployment(&d)
	for _, id := range canaries {
		e.unmarkCanary(id, c.Time)
	}
	e.putEvals(c.Evals)
	return nil
}

// healthyCanaries counts the placed canaries that still run and are healthy. Replaced canaries remain in
// PlacedCanaries, so the length of that list is not the number.
func (e *entry) healthyCanaries(s *drover.DeploymentState) int {
	n := 0
	for _, id := range s.PlacedCanaries {
		if a := e.txn.Allocation(id); a != nil && !a.Terminal() && progress.Healthy(a) {
			n++
		}
	}
	return n
}

// unmarkCanary makes a promoted canary an ordinary allocation. AllocModifyIndex advances because its node must act: the
// services of a canary have other tags.
func (e *entry) unmarkCanary(id string, now int64) {
	old := e.txn.Allocation(id)
	if old == nil || old.DeploymentStatus == nil || !old.DeploymentStatus.Canary {
		return
	}
	a, s := *old, *old.DeploymentStatus
	s.Canary, s.ModifyIndex = false, e.index
	a.DeploymentStatus = &s
	a.ModifyIndex, a.AllocModifyIndex, a.ModifyTime = e.index, e.index, now
	e.putAlloc(old, &a)
}
