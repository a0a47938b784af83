package intake

import (
	"context"

	"drover"
	"drover/internal/control/command"
)

// ScaleRequest sets the count of a group; a nil Count changes nothing.
type ScaleRequest struct {
	Namespace, ID, Group string
	Count                *int
	Message              string
	Error                bool
	Meta                 map[string]any
	JobModifyIndex       uint64 // if not 0: refuse unless it is the job's
}

// ScaleJob sets a group's count (of a pool: its size). Scaling events are not kept. Errors: NotFound, Invalid (no such
// group, beyond the scaling policy's bounds, a deployment is under way), Conflict when the index is another.
func (in *Intake) ScaleJob(ctx context.Context, r ScaleRequest) (Outcome, error) {
	for {
		o, err := in.scale(ctx, r)
		if drover.CodeOf(err) == drover.Conflict && r.JobModifyIndex == 0 && ctx.Err() == nil {
			continue // someone else changed the job meanwhile: take their version
		}
		return o, err
	}
}

func (in *Intake) scale(ctx context.Context, r ScaleRequest) (Outcome, error) {
	old, err := in.job(r.Namespace, r.ID)
	if err != nil {
		return Outcome{}, err
	}
	g := old.Group(r.Group)
	if g == nil {
		return Outcome{}, drover.Errorf(drover.Invalid, "task group %q specified for scaling does not exist in job", r.Group)
	}
	if r.JobModifyIndex != 0 && r.JobModifyIndex != old.JobModifyIndex {
		return Outcome{}, drover.Errorf(drover.Conflict, "enforcing job modify index %d: job exists with conflicting job modify index: %d",
			r.JobModifyIndex, old.JobModifyIndex)
	}
	if r.Count == nil {
		return Outcome{Index: in.deps.Store.Index(), JobModifyIndex: old.JobModifyIndex, JobCreateIndex: old.CreateIndex}, nil
	}
	if err := in.checkScale(old, g, r); err != nil {
		return Outcome{}, err
	}
	j := drover.Copy(old)
	g = j.Group(r.Group)
	g.Count = new(*r.Count)
	if g.Pool != nil {
		g.Pool.Size = *r.Count
	}
	if err := j.Validate(); err != nil {
		return Outcome{}, err
	}
	j.SubmitTime = 0
	return in.register(ctx, j, RegisterRequest{EnforceIndex: true, JobModifyIndex: old.JobModifyIndex}, drover.TriggerScaling)
}

func (in *Intake) checkScale(j *drover.Job, g *drover.TaskGroup, r ScaleRequest) error {
	if r.Error {
		return drover.Errorf(drover.Invalid, "scaling action should not contain count if error is true")
	}
	if *r.Count < 0 {
		return drover.Errorf(drover.Invalid, "scaling action count can't be negative")
	}
	if j.Type == drover.JobTypeSystem || j.Type == drover.JobTypeSysBatch {
		return drover.Errorf(drover.Invalid, "cannot scale jobs of type %s", j.Type)
	}
	s := in.deps.Store.Snapshot()
	if cfg := s.SchedulerConfig(); cfg != nil && cfg.RejectJobRegistration {
		return drover.Errorf(drover.Forbidden, "job registration, dispatch, and scale are disabled by the scheduler configuration")
	}
	for d := range s.DeploymentsByJob(j.Namespace, j.ID) {
		if d.Active() && d.JobCreateIndex == j.CreateIndex {
			return drover.Errorf(drover.Invalid, "job scaling blocked due to active deployment")
		}
	}
	if p := g.Scaling; p != nil {
		if p.Min != nil && int64(*r.Count) < *p.Min {
			return drover.Errorf(drover.Invalid, "group count was less than scaling policy minimum: %d < %d", *r.Count, *p.Min)
		}
		if p.Max != nil && int64(*r.Count) > *p.Max {
			return drover.Errorf(drover.Invalid, "group count was greater than scaling policy maximum: %d > %d", *r.Count, *p.Max)
		}
	}
	return nil
}

// RevertRequest registers an older version again.
type RevertRequest struct {
	Namespace, ID       string
	Version             uint64
	EnforcePriorVersion *uint64
}

// RevertJob makes an older version the newest. Errors: NotFound (job or version), Invalid for the current version,
// Conflict when EnforcePriorVersion is not the current one.
func (in *Intake) RevertJob(ctx context.Context, r RevertRequest) (Outcome, error) {
	now, err := in.job(r.Namespace, r.ID)
	if err != nil {
		return Outcome{}, err
	}
	if now.Version == r.Version {
		return Outcome{}, drover.Errorf(drover.Invalid, "can't revert to current version")
	}
	if p := r.EnforcePriorVersion; p != nil && *p != now.Version {
		return Outcome{}, drover.Errorf(drover.Conflict, "current job has version %d; enforcing version %d", now.Version, *p)
	}
	old := in.deps.Store.Snapshot().JobVersion(r.Namespace, r.ID, r.Version)
	if old == nil {
		return Outcome{}, drover.Errorf(drover.NotFound, "job %q in namespace %q at version %d was not found", r.ID, r.Namespace, r.Version)
	}
	spec := *old
	spec.Stop, spec.SubmitTime = false, 0
	req := RegisterRequest{EnforceIndex: true, JobModifyIndex: now.JobModifyIndex}
	o, err := in.register(ctx, &spec, req, drover.TriggerJobRegister)
	if err == nil {
		o.RevertedJobVersion = new(r.Version)
	}
	return o, err
}

// SetJobStable marks a version as known to work or not. Errors: NotFound.
func (in *Intake) SetJobStable(ctx context.Context, namespace, id string, version uint64, stable bool) (Outcome, error) {
	o, err := in.propose(ctx, &command.SetJobStability{Namespace: namespace, ID: id, Version: version, Stable: stable})
	o.JobModifyIndex = o.Index
	return o, err
}
