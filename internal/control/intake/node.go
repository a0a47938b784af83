package intake

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// StopAllocation stops an allocation and has the scheduler replace it; a claimed runner is not replaced. An ended one
// is left alone. Errors: NotFound.
func (in *Intake) StopAllocation(ctx context.Context, id string, noShutdownDelay, reschedule bool) (drover.Outcome, error) {
	a := in.deps.Store.Snapshot().Allocation(id)
	if a == nil {
		return drover.Outcome{}, drover.Errorf(drover.NotFound, "alloc not found")
	}
	m := in.maker()
	j := a.Job
	if stored := in.deps.Store.Snapshot().Job(a.Namespace, a.JobID); stored != nil {
		j = stored
	}
	if j == nil {
		return drover.Outcome{}, drover.Errorf(drover.NotFound, "job not found")
	}
	eval := m.Job(j, drover.TriggerAllocStop)
	// A claimer's session cannot be moved to another runner, so this one is stopped and not migrated.
	if a.Claim != nil {
		c := &command.StopAllocs{IDs: []string{id}, Description: "stopped by user", Evals: []*drover.Evaluation{eval}, Time: m.Now}
		return in.proposeWith(ctx, c, eval)
	}
	t := drover.DesiredTransition{Migrate: new(true)}
	if noShutdownDelay {
		t.NoShutdownDelay = new(true)
	}
	if reschedule {
		t.Reschedule = new(true)
	}
	c := &command.TransitionAllocs{
		Transitions: map[string]drover.DesiredTransition{id: t}, Evals: []*drover.Evaluation{eval}, Time: m.Now,
	}
	return in.proposeWith(ctx, c, eval)
}

// SetEligibility lets allocations be placed on a node or not. Errors: NotFound, Invalid, Conflict while it drains.
func (in *Intake) SetEligibility(ctx context.Context, nodeID, eligibility string) (drover.Outcome, error) {
	n, err := in.node(nodeID)
	if err != nil {
		return drover.Outcome{}, err
	}
	m := in.maker()
	c := &command.SetEligibility{
		NodeID: nodeID, Eligibility: eligibility, Time: m.Now, Event: in.nodeEvent(command.MarkedAs+eligibility+" for scheduling", "Cluster"),
	}
	if eligibility == drover.NodeEligible && n.SchedulingEligibility != eligibility {
		c.Evals = m.Node(in.deps.Store.Snapshot(), nodeID, drover.TriggerNodeUpdate)
	}
	o, err := in.proposeWith(ctx, c, c.Evals...)
	o.NodeModifyIndex = o.Index
	return o, err
}

// DrainNode starts, changes or cancels a drain. Errors: NotFound.
func (in *Intake) DrainNode(ctx context.Context, r drover.DrainRequest) (drover.Outcome, error) {
	if _, err := in.node(r.NodeID); err != nil {
		return drover.Outcome{}, err
	}
	m := in.maker()
	c := &command.SetDrain{NodeID: r.NodeID, MarkEligible: r.MarkEligible, Meta: r.Meta, Time: m.Now}
	if r.Spec == nil {
		c.Event = in.nodeEvent("Node drain canceled", command.DrainEvent)
		c.Evals = m.Node(in.deps.Store.Snapshot(), r.NodeID, drover.TriggerNodeUpdate)
	} else { // who has to move is looked at when it is told to
		now := in.now().UTC()
		c.Strategy = &drover.DrainStrategy{DrainSpec: *r.Spec, StartedAt: now}
		if r.Spec.Deadline > 0 {
			c.Strategy.ForceDeadline = now.Add(r.Spec.Deadline)
		}
		c.Event = in.nodeEvent("Node drain strategy set", command.DrainEvent)
	}
	o, err := in.proposeWith(ctx, c, c.Evals...)
	o.NodeModifyIndex = o.Index
	return o, err
}

// EvaluateNode has every job on the node, and every system job, looked at again. Errors: NotFound.
func (in *Intake) EvaluateNode(ctx context.Context, nodeID string) (drover.Outcome, error) {
	n, err := in.node(nodeID)
	if err != nil {
		return drover.Outcome{}, err
	}
	evals := in.maker().Node(in.deps.Store.Snapshot(), nodeID, drover.TriggerNodeUpdate)
	o, err := in.proposeWith(ctx, &command.UpdateEvals{Evals: evals}, evals...)
	o.NodeModifyIndex = n.ModifyIndex
	return o, err
}

// SetNodeMeta sets keys of a node's metadata at runtime, over the node's own; nil removes one. Jobs that this may let
// in, or that constrain on it, are looked at again. Errors: NotFound.
func (in *Intake) SetNodeMeta(ctx context.Context, nodeID string, change map[string]*string) (drover.Outcome, error) {
	if _, err := in.node(nodeID); err != nil {
		return drover.Outcome{}, err
	}
	m := in.maker()
	c := &command.SetNodeMeta{
		NodeID: nodeID, Meta: change, Time: m.Now,
		Evals: m.Node(in.deps.Store.Snapshot(), nodeID, drover.TriggerNodeUpdate),
	}
	o, err := in.proposeWith(ctx, c, c.Evals...)
	o.NodeModifyIndex = o.Index
	return o, err
}

// PurgeNode forgets a node; its allocations are lost. Errors: NotFound.
func (in *Intake) PurgeNode(ctx context.Context, nodeID string) (drover.Outcome, error) {
	if _, err := in.node(nodeID); err != nil {
		return drover.Outcome{}, err
	}
	m := in.maker()
	evals := m.Node(in.deps.Store.Snapshot(), nodeID, drover.TriggerNodeUpdate)
	o, err := in.proposeWith(ctx, &command.DeregisterNodes{IDs: []string{nodeID}, Evals: evals, Time: m.Now}, evals...)
	o.NodeModifyIndex = o.Index
	return o, err
}

// nodeEvent makes an event of the node's history. The state machine adds the index.
func (in *Intake) nodeEvent(message, subsystem string) *drover.NodeEvent {
	return &drover.NodeEvent{Message: message, Subsystem: subsystem, Timestamp: in.now().UTC().Truncate(time.Microsecond)}
}
