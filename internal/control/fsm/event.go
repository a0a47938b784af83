package fsm

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/service"
)

// events describes what the entry changed. Garbage collected evaluations, allocations and deployments are not told.
func (e *entry) events() []drover.Event {
	out := make([]drover.Event, 0,
		len(e.jobs.list)+len(e.deployments.list)+len(e.evals.list)+len(e.allocs.list)+len(e.nodes.list)+len(e.pools.list))
	for _, c := range e.jobs.list {
		out = e.jobEvents(out, c)
	}
	for _, c := range e.deployments.list {
		d := c.now
		out = append(out, e.event(drover.TopicDeployment, c.kind.EventType(), d.ID, d.Namespace,
			[]string{d.JobID}, "Deployment", d))
	}
	for _, c := range e.evals.list {
		v := c.now
		out = append(out, e.event(drover.TopicEvaluation, c.kind.EventType(), v.ID, v.Namespace,
			[]string{v.JobID, v.DeploymentID}, "Evaluation", v))
	}
	for _, c := range e.allocs.list {
		out = e.allocEvents(out, c)
	}
	for _, c := range e.nodes.list {
		n, kind := c.now, c.kind.EventType()
		if n == nil {
			n, kind = c.gone, command.KindDeregisterNodes.EventType()
		}
		out = append(out, e.event(drover.TopicNode, kind, n.ID, "", []string{n.NodePool}, "Node", n))
	}
	for _, c := range e.pools.list {
		p, kind := c.now, "NodePoolUpserted"
		if p == nil {
			p, kind = c.gone, "NodePoolDeleted"
		}
		out = append(out, e.event(drover.TopicNodePool, kind, p.Name, "", nil, "NodePool", p))
	}
	return append(e.serviceEvents(out), e.told...)
}

// serviceEvents appends those of the registrations that follow from changed allocations.
func (e *entry) serviceEvents(out []drover.Event) []drover.Event {
	made, gone := e.txn.ServiceChanges()
	tell := func(kind string, list []*service.Registration) {
		for _, r := range list {
			out = append(out, e.event(drover.TopicService, kind, r.ID, r.Namespace, []string{r.JobID, r.ServiceName}, "Service", r))
		}
	}
	tell("ServiceDeregistration", gone)
	tell("ServiceRegistration", made)
	return out
}

// event builds an event of this entry. The filter keys are further ids by which a subscriber may select it. The payload
// is an object with one member, name, as in Nomad's event stream.
func (e *entry) event(topic, kind, key, namespace string, filter []string, name string, payload any) drover.Event {
	return drover.Event{
		Topic: topic, Type: kind, Key: key, Namespace: namespace, FilterKeys: filter, Index: e.index,
		Payload: map[string]any{name: payload},
	}
}

// jobEvents appends the job's event, and a second one for the environment if the job keeps a warm pool. A purged job
// has the type JobDeregistered, one that was garbage collected Nomad's JobBatchDeregistered.
func (e *entry) jobEvents(out []drover.Event, c change[drover.NamespacedID, *drover.Job]) []drover.Event {
	j, kind := c.now, c.kind.EventType()
	if j == nil {
		j = c.gone
		if c.kind != command.KindReap {
			kind = "JobDeregistered"
		}
	}
	ev := e.event(drover.TopicJob, kind, j.ID, j.Namespace, nil, "Job", j)
	ev.Payload["Deleted"] = c.now == nil
	out = append(out, ev)
	if hasPool(j) {
		ev.Topic, ev.Type = drover.TopicEnvironment, "EnvironmentUpdated"
		ev.Key, ev.FilterKeys = environmentOf(j.ID), []string{j.ID}
		if c.now == nil || j.Stop {
			ev.Type = "EnvironmentDeleted"
		}
		out = append(out, ev)
	}
	return out
}

// hasPool reports whether a group of the job keeps warm runners.
func hasPool(j *drover.Job) bool {
	for _, g := range j.TaskGroups {
		if g.Pool != nil {
			return true
		}
	}
	return false
}

// allocEvents appends the allocation's event, and one of the runner if its group is a warm pool. The job is left out of
// the payload, as in Nomad: it would be repeated with each allocation.
func (e *entry) allocEvents(out []drover.Event, c change[string, *drover.Allocation]) []drover.Event {
	a := *c.now
	a.Job = nil
	out = append(out, e.event(drover.TopicAllocation, c.kind.EventType(), a.ID, a.Namespace,
		[]string{a.JobID, a.DeploymentID}, "Allocation", &a))
	if g := c.now.Job; g != nil {
		if group := g.Group(a.TaskGroup); group != nil && group.Pool != nil {
			out = append(out, e.runnerEvent(&a, c.kind))
		}
	}
	return out
}
