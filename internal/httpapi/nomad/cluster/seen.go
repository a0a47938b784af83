package cluster

import (
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/volume"
)

// topics are those of the event stream whose events others than management may see.
var topics = []string{
	drover.TopicJob, drover.TopicEvaluation, drover.TopicAllocation, drover.TopicDeployment, drover.TopicService,
	drover.TopicEnvironment, drover.TopicRunner, drover.TopicExecution, drover.TopicNode, drover.TopicNodePool, drover.TopicHostVolume,
	drover.TopicVolumeClaim, drover.TopicInstance, drover.TopicFleetPool,
}

// seesEvent reports whether the caller may see events of a topic about what has the key in the namespace.
func seesEvent(c *rights.Caller, topic, namespace, key string) bool {
	switch topic {
	case drover.TopicJob, drover.TopicEvaluation, drover.TopicAllocation, drover.TopicDeployment, drover.TopicService:
		return c.Namespace(namespace, policy.ReadJob)
	case drover.TopicEnvironment, drover.TopicRunner, drover.TopicExecution:
		return c.Namespace(namespace, policy.ReadRunner)
	case drover.TopicHostVolume, drover.TopicVolumeClaim:
		return c.Namespace(namespace, policy.HostVolumeRead)
	case drover.TopicNode:
		return c.Part(policy.Node, policy.Read)
	case drover.TopicNodePool:
		return c.NodePool(key, policy.ReadPool)
	case drover.TopicInstance, drover.TopicFleetPool:
		return c.Part(policy.Fleet, policy.Read)
	default:
		return c.Management()
	}
}

// seen returns the events that the caller may see.
func seen(c *rights.Caller, all drover.Events) drover.Events {
	if c.Management() {
		return all
	}
	out := drover.Events{Index: all.Index}
	for i := range all.Events {
		if e := &all.Events[i]; seesEvent(c, e.Topic, e.Namespace, e.Key) {
			out.Events = append(out.Events, *e)
		}
	}
	return out
}

// subscribes reports whether the caller may see something of each topic, in the namespace or in some one for "*". Of all topics one is
// enough.
func subscribes(c *rights.Caller, asked map[string][]string, namespace string) bool {
	some := func(topic string) bool {
		return topic == drover.TopicNodePool || seesEvent(c, topic, namespace, "") // pools are seen one by one
	}
	for topic := range asked {
		switch {
		case topic != drover.TopicAll && !some(topic):
			return false
		case topic == drover.TopicAll && !anyOf(topics, func(t string) bool { return t != drover.TopicNodePool && some(t) }):
			return false
		}
	}
	return true
}

// anyOf reports whether one of the items is wanted.
func anyOf[T any](items []T, wanted func(T) bool) bool {
	for _, it := range items {
		if wanted(it) {
			return true
		}
	}
	return false
}

// sees says what of the state a search may find.
type sees struct{ *rights.Caller }

func (c sees) job(j *drover.Job) bool               { return c.Namespace(j.Namespace, policy.ReadJob) }
func (c sees) allocation(a *drover.Allocation) bool { return c.Namespace(a.Namespace, policy.ReadJob) }
func (c sees) evaluation(e *drover.Evaluation) bool { return c.Namespace(e.Namespace, policy.ReadJob) }
func (c sees) deployment(d *drover.Deployment) bool { return c.Namespace(d.Namespace, policy.ReadJob) }
func (c sees) volume(v *volume.HostVolume) bool {
	return c.Namespace(v.Namespace, policy.HostVolumeRead)
}
func (c sees) node(*drover.Node) bool              { return c.Part(policy.Node, policy.Read) }
func (c sees) pool(p *drover.NodePool) bool        { return c.NodePool(p.Name, policy.ReadPool) }
func (c sees) namespace(n *tenancy.Namespace) bool { return c.SeesNamespace(n.Name) }
func (c sees) scaling(p *drover.ScalingPolicy) bool {
	return c.Namespace(p.Namespace, policy.ListScalingPolicies)
}

// searches reports whether the caller may search a context at all, in the namespace or in some one for "*".
func (c sees) searches(context, namespace string) bool {
	switch context {
	case "allocs", "deployment", "evals", "jobs":
		return c.Namespace(namespace, policy.ReadJob)
	case "host_volumes":
		return c.Namespace(namespace, policy.HostVolumeRead)
	case "nodes":
		return c.Part(policy.Node, policy.Read)
	case "quotas":
		return c.Part(policy.Quota, policy.Read)
	case "scaling_policy":
		return c.Namespace(namespace, policy.ListScalingPolicies)
	}
	return true // is seen one by one, or there is never anything in it
}

// kept yields the items that are kept.
func kept[T any](items iter.Seq[T], keep func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for it := range items {
			if keep(it) && !yield(it) {
				return
			}
		}
	}
}
