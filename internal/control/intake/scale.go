package intake

import (
	"cmp"
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/deepcopy"
)

// ScaleJob sets a group's count (of a pool: its size) and keeps a scaling event of it. Errors: NotFound, Invalid (no such
// group, beyond the scaling policy's bounds, a deployment is under way), Conflict when the index is another.
func (in *Intake) ScaleJob(ctx context.Context, r drover.ScaleRequest) (drover.Outcome, error) {
	for {
		o, err := in.scale(ctx, r)
		if drover.CodeOf(err) == drover.Conflict && r.JobModifyIndex == 0 && ctx.Err() == nil {
			continue // someone else changed the job meanwhile: take their version
		}
		return o, err
	}
}

// scale makes one attempt. The new count is registered only if the job is still what was read, so that it does not undo
// another's change: a Conflict then. A request without a count only records the event.
func (in *Intake) scale(ctx context.Context, r drover.ScaleRequest) (drover.Outcome, error) {
	old, err := in.job(r.Namespace, r.ID)
	if err != nil {
		return drover.Outcome{}, err
	}
	g := old.Group(r.Group)
	if g == nil {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "task group %q specified for scaling does not exist in job", r.Group)
	}
	if r.JobModifyIndex != 0 && r.JobModifyIndex != old.JobModifyIndex {
		return drover.Outcome{}, drover.Errorf(drover.Conflict, "enforcing job modify index %d: job exists with conflicting job modify index: %d",
			r.JobModifyIndex, old.JobModifyIndex)
	}
	event := in.scalingEvent(g, r)
	// A request without a count only reports something, such as an autoscaler's error.
	if r.Count == nil {
		o, err := in.record(ctx, r, event)
		o.JobModifyIndex, o.JobCreateIndex = old.JobModifyIndex, old.CreateIndex
		return o, err
	}
	if err := in.checkScale(old, g, r); err != nil {
		return drover.Outcome{}, err
	}
	if in.deploying(old) {
		return drover.Outcome{}, in.blocked(ctx, r, event)
	}
	j := deepcopy.Of(old)
	g = j.Group(r.Group)
	// A pool's count is always its size: Canonicalize would set it so as well.
	g.Count = new(*r.Count)
	if g.Pool != nil {
		g.Pool.Size = *r.Count
	}
	if err := cmp.Or(j.Validate(), in.tooMany(j)); err != nil {
		return drover.Outcome{}, err
	}
	warnings, err := in.refused(ctx, j)
	if err != nil && *r.Count >= *old.Group(r.Group).Count { // with less of it nothing begins
		return drover.Outcome{}, err
	}
	j.SubmitTime = 0
	return in.register(ctx, j, registration{
		RegisterRequest: drover.RegisterRequest{EnforceIndex: true, JobModifyIndex: old.JobModifyIndex},
		by:              drover.TriggerScaling, scaling: &command.ScalingRecord{Group: r.Group, Event: event}, warnings: warnings,
	})
}

// scalingEvent describes the request for the job's history; the previous count is what the job has now.
func (in *Intake) scalingEvent(g *drover.TaskGroup, r drover.ScaleRequest) drover.ScalingEvent {
	e := drover.ScalingEvent{Time: in.now().UnixNano(), PreviousCount: int64(*g.Count), Message: r.Message, Error: r.Error, Meta: r.Meta}
	if r.Count != nil {
		e.Count = new(int64(*r.Count))
	}
	return e
}

// record keeps a scaling event that changes nothing.
func (in *Intake) record(ctx context.Context, r drover.ScaleRequest, e drover.ScalingEvent) (drover.Outcome, error) {
	return in.propose(ctx, &command.RecordScaling{
		Namespace: r.Namespace, JobID: r.ID, Record: command.ScalingRecord{Group: r.Group, Event: e},
	})
}

// blocked keeps what was asked for while a deployment is under way, and returns the refusal.
func (in *Intake) blocked(ctx context.Context, r drover.ScaleRequest, e drover.ScalingEvent) error {
	const why = "job scaling blocked due to active deployment"
	e.Meta = map[string]any{"OriginalMessage": e.Message, "OriginalCount": *e.Count, "OriginalMeta": e.Meta}
	e.Message, e.Error, e.Count = why, true, nil
	if _, err := in.record(ctx, r, e); err != nil {
		return err
	}
	return drover.Errorf(drover.Invalid, why)
}

// deploying reports whether a roll-out of the job is under way. As in Nomad, a job cannot be scaled until
// that is over.
func (in *Intake) deploying(j *drover.Job) bool {
	for d := range in.deps.Store.Snapshot().DeploymentsByJob(j.Namespace, j.ID) {
		if d.Active() && d.JobCreateIndex == j.CreateIndex {
			return true
		}
	}
	return false
}

// checkScale reports why the count may not be set: Invalid, or Forbidden while registration is switched off. The bounds
// are those of the group's scaling block, and hold for a disabled policy too. The request has a count.
func (in *Intake) checkScale(j *drover.Job, g *drover.TaskGroup, r drover.ScaleRequest) error {
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
