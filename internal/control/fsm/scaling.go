package fsm

import (
	"maps"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// recordScaling keeps a scaling event that did not change the job, such as an autoscaler's error. Errors: NotFound for
// the job or the group.
func (e *entry) recordScaling(c *command.RecordScaling) error {
	j := e.txn.Job(c.Namespace, c.JobID)
	if j == nil {
		return drover.Errorf(drover.NotFound, "job %q not found", c.JobID)
	}
	if j.Group(c.Record.Group) == nil {
		return drover.Errorf(drover.NotFound, "job %q has no group %q", c.JobID, c.Record.Group)
	}
	e.keepScaling(j, &c.Record)
	return nil
}

// keepScaling puts the event in front of its group's, the oldest of which go.
func (e *entry) keepScaling(j *drover.Job, r *command.ScalingRecord) {
	ev := r.Event
	ev.CreateIndex = e.index
	next := &drover.JobScalingEvents{
		Namespace: j.Namespace, JobID: j.ID, ModifyIndex: e.index, ScalingEvents: map[string][]*drover.ScalingEvent{},
	}
	if old := e.txn.ScalingEvents(j.Namespace, j.ID); old != nil {
		maps.Copy(next.ScalingEvents, old.ScalingEvents)
	}
	list := append([]*drover.ScalingEvent{&ev}, next.ScalingEvents[r.Group]...)
	next.ScalingEvents[r.Group] = list[:min(len(list), drover.TrackedScalingEvents)]
	e.txn.PutScalingEvents(next)
}
