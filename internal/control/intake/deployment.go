package intake

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// deployment returns an active deployment and its job; what is to be done to it is for the error. Errors: NotFound,
// Conflict if it is over.
func (in *Intake) deployment(id, do string) (*drover.Deployment, *drover.Job, error) {
	s := in.deps.Store.Snapshot()
	d := s.Deployment(id)
	switch {
	case d == nil:
		return nil, nil, drover.Errorf(drover.NotFound, "deployment not found")
	case !d.Active():
		return nil, nil, drover.Errorf(drover.Conflict, "can't %s terminal deployment", do)
	}
	j := s.Job(d.Namespace, d.JobID)
	if j == nil {
		return nil, nil, drover.Errorf(drover.NotFound, "job not found")
	}
	return d, j, nil
}

// deploymentEval returns an evaluation of the deployment's job: the scheduler places or stops what the change calls
// for.
func (in *Intake) deploymentEval(d *drover.Deployment, j *drover.Job) *drover.Evaluation {
	e := in.maker().Job(j, drover.TriggerDeploymentWatcher)
	e.DeploymentID = d.ID
	return e
}

// proposeDeployment commits a change of a deployment. The entry's index is the deployment's new ModifyIndex.
func (in *Intake) proposeDeployment(ctx context.Context, c command.Command, e *drover.Evaluation) (drover.Outcome, error) {
	o, err := in.proposeWith(ctx, c, e)
	o.DeploymentModifyIndex = o.Index
	return o, err
}

// PromoteDeployment promotes the canaries of the groups; of all groups if there are none given. Errors: NotFound,
// Invalid (no such group), Conflict if it is over or canaries are not healthy.
func (in *Intake) PromoteDeployment(ctx context.Context, id string, groups []string) (drover.Outcome, error) {
	d, j, err := in.deployment(id, "promote")
	if err != nil {
		return drover.Outcome{}, err
	}
	if len(groups) == 0 {
		groups = nil
	}
	e := in.deploymentEval(d, j)
	c := &command.PromoteDeployment{DeploymentID: id, Groups: groups, Evals: []*drover.Evaluation{e}, Time: in.now().UnixNano()}
	return in.proposeDeployment(ctx, c, e)
}

// FailDeployment ends a deployment as failed; a group with auto_revert brings the newest stable version back.
// Errors: NotFound, Conflict if it is over.
func (in *Intake) FailDeployment(ctx context.Context, id string) (drover.Outcome, error) {
	d, j, err := in.deployment(id, "fail")
	if err != nil {
		return drover.Outcome{}, err
	}
	e := in.deploymentEval(d, j)
	revert := false
	for _, g := range d.TaskGroups {
		revert = revert || g.AutoRevert
	}
	c := &command.UpdateDeploymentStatus{Evals: []*drover.Evaluation{e}, Time: in.now().UnixNano()}
	c.Update, c.Job = Failure(in.deps.Store.Snapshot(), d, "Deployment marked as failed", revert)
	o, err := in.proposeDeployment(ctx, c, e)
	if c.Job != nil && err == nil {
		o.RevertedJobVersion = new(c.Job.Version)
	}
	return o, err
}

// PauseDeployment pauses or resumes a deployment. Errors: NotFound, Conflict if it is over.
func (in *Intake) PauseDeployment(ctx context.Context, id string, pause bool) (drover.Outcome, error) {
	do := "resume"
	if pause {
		do = "pause"
	}
	d, j, err := in.deployment(id, do)
	if err != nil {
		return drover.Outcome{}, err
	}
	c := &command.UpdateDeploymentStatus{
		Update: &drover.DeploymentStatusUpdate{
			DeploymentID: id, Status: drover.DeploymentPaused, StatusDescription: "Deployment is paused",
		},
		Time: in.now().UnixNano(),
	}
	var e *drover.Evaluation
	// A pause starts nothing new, so it needs no evaluation.
	if !pause {
		c.Update.Status, c.Update.StatusDescription = drover.DeploymentRunning, "Deployment is running"
		e = in.deploymentEval(d, j)
		c.Evals = []*drover.Evaluation{e}
	}
	return in.proposeDeployment(ctx, c, e)
}

// UnblockDeployment resumes a deployment that waits for other regions. Errors: NotFound, Invalid if it is not blocked.
func (in *Intake) UnblockDeployment(ctx context.Context, id string) (drover.Outcome, error) {
	d, j, err := in.deployment(id, "unblock")
	if err != nil {
		return drover.Outcome{}, err
	}
	if d.Status != drover.DeploymentBlocked {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "can't unblock deployment: it is %s", d.Status)
	}
	e := in.deploymentEval(d, j)
	c := &command.UpdateDeploymentStatus{
		Update: &drover.DeploymentStatusUpdate{
			DeploymentID: id, Status: drover.DeploymentRunning, StatusDescription: "Deployment is running",
		},
		Evals: []*drover.Evaluation{e}, Time: in.now().UnixNano(),
	}
	return in.proposeDeployment(ctx, c, e)
}

// SetAllocHealth sets the health of a deployment's allocations by hand. An unhealthy one fails the deployment. Errors:
// NotFound (deployment, allocation), Invalid (nothing to set, another deployment's), Conflict if it is over.
func (in *Intake) SetAllocHealth(ctx context.Context, deploymentID string, healthy, unhealthy []string) (drover.Outcome, error) {
	d, j, err := in.deployment(deploymentID, "set health of allocations for a")
	if err != nil {
		return drover.Outcome{}, err
	}
	if len(healthy)+len(unhealthy) == 0 {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "must specify at least one healthy/unhealthy allocation ID")
	}
	s, revert := in.deps.Store.Snapshot(), false
	for i, list := range [][]string{healthy, unhealthy} {
		for _, id := range list {
			a := s.Allocation(id)
			if a == nil {
				return drover.Outcome{}, drover.Errorf(drover.NotFound, "alloc %q not found", id)
			}
			if a.DeploymentID != d.ID {
				return drover.Outcome{}, drover.Errorf(drover.Invalid, "alloc %q is not part of deployment %q", id, d.ID)
			}
			g := d.TaskGroups[a.TaskGroup]
			revert = revert || i == 1 && g != nil && g.AutoRevert
		}
	}
	e := in.deploymentEval(d, j)
	c := &command.SetAllocHealth{
		DeploymentID: deploymentID, Healthy: healthy, Unhealthy: unhealthy, Evals: []*drover.Evaluation{e},
		Time: in.now().UnixNano(),
	}
	if len(unhealthy) > 0 {
		c.Update, c.Job = Failure(s, d, FailedByHealth, revert)
	}
	o, err := in.proposeDeployment(ctx, c, e)
	if c.Job != nil && err == nil {
		o.RevertedJobVersion = new(c.Job.Version)
	}
	return o, err
}
