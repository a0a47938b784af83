package fsm

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
)

// maxNodeEvents is the length of a node's history; the oldest go first.
const maxNodeEvents = 10

// registerNode stores a node or renews its record. Errors: Invalid without a node, Forbidden for another secret. A
// renewed record is the node's new fingerprint, but what operators and the server decided stays: drain, eligibility,
// dynamic meta and history. A node that is new gets the default pool and is eligible unless it says otherwise.
func (e *entry) registerNode(c *command.RegisterNode) error {
	if c.Node == nil || c.Node.ID == "" {
		return drover.Errorf(drover.Invalid, "registering: no node")
	}
	n := *c.Node
	old := e.txn.Node(n.ID)
	if old != nil && old.SecretID != "" && old.SecretID != n.SecretID {
		return drover.Errorf(drover.Forbidden, "node %s: the secret is not the one it registered with", n.ID)
	}
	message := "Node registered"
	n.CreateIndex, n.ModifyIndex = e.index, e.index
	if n.NodePool == "" {
		n.NodePool = drover.DefaultNodePool
	}
	if old != nil {
		n.CreateIndex, n.Events, n.LastDrain = old.CreateIndex, old.Events, old.LastDrain
		n.Drain, n.DrainStrategy, n.SchedulingEligibility = old.Drain, old.DrainStrategy, old.SchedulingEligibility
		n.MergeMeta(n.OwnMeta(), old.DynamicMeta)
		message = ""
		if (old.Status == drover.NodeStatusDown || old.Status == drover.NodeStatusDisconnected) && n.Status == drover.NodeStatusReady {
			message = "Node re-registered"
		}
	}
	if n.SchedulingEligibility == "" {
		n.SchedulingEligibility = drover.NodeEligible
	}
	if old == nil || old.Status != n.Status {
		n.StatusUpdatedAt = c.Time / int64(time.Second)
	} else {
		n.StatusUpdatedAt = old.StatusUpdatedAt
	}
	if message != "" {
		e.addNodeEvent(&n, &drover.NodeEvent{Message: message, Subsystem: "Cluster", Timestamp: time.Unix(0, c.Time).UTC()})
	}
	e.ensurePool(n.NodePool)
	e.followVolumes(&n, c.Time)
	e.putNode(&n)
	e.putNodeEvals(c.Evals, c.Time, n.ID)
	return nil
}

// ensurePool makes the pool that a node names.
func (e *entry) ensurePool(name string) {
	if e.txn.NodePool(name) == nil {
		e.putPool(&drover.NodePool{Name: name, CreateIndex: e.index, ModifyIndex: e.index})
	}
}

// updateNodeStatuses sets statuses, or only adds an event where the status is empty. Nodes that were forgotten since
// the command was made are skipped. StatusUpdatedAt is in Unix seconds, as in Nomad's API.
func (e *entry) updateNodeStatuses(c *command.UpdateNodeStatuses) {
	var changed []string
	for _, s := range c.Nodes {
		old := e.txn.Node(s.NodeID)
		if old == nil {
			continue
		}
		n := *old
		if s.Status != "" {
			n.Status, n.StatusDescription = s.Status, s.Description
			n.StatusUpdatedAt = c.Time / int64(time.Second)
			changed = append(changed, n.ID)
		}
		e.addNodeEvent(&n, s.Event)
		n.ModifyIndex = e.index
		if s.Status != "" {
			e.followVolumes(&n, c.Time)
		}
		e.putNode(&n)
	}
	e.putNodeEvals(c.Evals, c.Time, changed...)
}

// setNodeMeta merges keys into the node's dynamic meta and returns the changed node. A nil value hides a key of the
// node's own configuration. The computed class depends on meta, so it is computed again. Errors: NotFound.
func (e *entry) setNodeMeta(c *command.SetNodeMeta) (*drover.Node, error) {
	old := e.txn.Node(c.NodeID)
	if old == nil {
		return nil, drover.Errorf(drover.NotFound, "node not found")
	}
	n := *old
	dynamic := maps.Clone(old.DynamicMeta)
	if dynamic == nil {
		dynamic = map[string]*string{}
	}
	maps.Copy(dynamic, c.Meta)
	n.MergeMeta(old.OwnMeta(), dynamic)
	n.ComputedClass, n.ModifyIndex = feasible.ComputedClass(&n), e.index
	e.putNode(&n)
	e.putNodeEvals(c.Evals, c.Time, n.ID)
	return &n, nil
}

// setEligibility sets whether new allocations may be placed on the node. Errors: NotFound, Invalid for an unknown word,
// Conflict if the node should become eligible while it drains. The evaluations are stored even if nothing changed.
func (e *entry) setEligibility(c *command.SetEligibility) error {
	old := e.txn.Node(c.NodeID)
	switch {
	case old == nil:
		return drover.Errorf(drover.NotFound, "node not found")
	case c.Eligibility != drover.NodeEligible && c.Eligibility != drover.NodeIneligible:
		return drover.Errorf(drover.Invalid, "invalid scheduling eligibility %q", c.Eligibility)
	case old.DrainStrategy != nil && c.Eligibility == drover.NodeEligible:
		return drover.Errorf(drover.Conflict, "can not set node's scheduling eligibility to eligible while it is draining")
	}
	if old.SchedulingEligibility == c.Eligibility {
		e.putEvals(c.Evals)
		return nil
	}
	n := *old
	n.SchedulingEligibility, n.ModifyIndex = c.Eligibility, e.index
	e.addNodeEvent(&n, c.Event)
	e.putNode(&n)
	e.putNodeEvals(c.Evals, c.Time, n.ID)
	return nil
}

// setDrain starts a drain, changes the one under way, or ends it if the command has no strategy. Errors: NotFound.
func (e *entry) setDrain(c *command.SetDrain) error {
	old := e.txn.Node(c.NodeID)
	if old == nil {
		return drover.Errorf(drover.NotFound, "node not found")
	}
	n := *old
	now := time.Unix(0, c.Time).UTC()
	if c.Strategy != nil {
		startDrain(&n, c, now)
	} else {
		endDrain(&n, c, now)
	}
	n.ModifyIndex = e.index
	e.addNodeEvent(&n, c.Event)
	e.putNode(&n)
	e.putNodeEvals(c.Evals, c.Time, n.ID)
	return nil
}

// startDrain makes the node ineligible with it, and records the drain in LastDrain. Whoever ends the drain decides
// whether the node becomes eligible again.
func startDrain(n *drover.Node, c *command.SetDrain, now time.Time) {
	started := now
	if n.DrainStrategy != nil && n.LastDrain != nil {
		started = n.LastDrain.StartedAt // the drain under way gets new terms
	}
	n.Drain, n.DrainStrategy, n.SchedulingEligibility = true, c.Strategy, drover.NodeIneligible
	n.LastDrain = &drover.DrainMetadata{StartedAt: started, UpdatedAt: now, Status: "draining", Meta: c.Meta}
}

// endDrain ends the drain as complete or canceled. LastDrain changes only if a drain was under way. MarkEligible works
// without one too: it undoes the ineligibility that a completed drain leaves behind.
func endDrain(n *drover.Node, c *command.SetDrain, now time.Time) {
	if n.DrainStrategy != nil {
		last := drover.DrainMetadata{StartedAt: now}
		if n.LastDrain != nil {
			last = *n.LastDrain
		}
		last.UpdatedAt, last.Status = now, "canceled"
		if c.Completed {
			last.Status = "complete"
		}
		if c.Meta != nil {
			last.Meta = c.Meta
		}
		n.LastDrain = &last
	}
	n.Drain, n.DrainStrategy = false, nil
	if c.MarkEligible {
		n.SchedulingEligibility = drover.NodeEligible
	}
}

// deregisterNodes forgets nodes, skipping unknown ones. Operators and the garbage collection cause it.
func (e *entry) deregisterNodes(c *command.DeregisterNodes) {
	for _, id := range c.IDs {
		if n := e.txn.Node(id); n != nil {
			e.deleteNode(n)
		}
	}
	e.putEvals(c.Evals)
}

// addNodeEvent appends to the history of n, a copy that is not stored yet. The list is cloned because the stored node
// shares its array. A nil event is ignored.
func (e *entry) addNodeEvent(n *drover.Node, ev *drover.NodeEvent) {
	if ev == nil {
		return
	}
	at := *ev
	at.CreateIndex = e.index
	events := append(slices.Clone(n.Events), &at)
	n.Events = events[max(0, len(events)-maxNodeEvents):]
}
