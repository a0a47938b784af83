package demand

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/fleet/ledger"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// Nodes returns the nodes that are machines of the fleet, and a channel that the next change closes.
func (v *View) Nodes() ([]pool.Node, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.deps.State()
	for nodeID := range v.dirty {
		if n := s.Node(nodeID); n != nil && n.Attributes[gate.AttributeInstance] != "" {
			v.nodes[nodeID] = v.nodeOf(s, n)
			v.learnKind(n)
		} else {
			delete(v.nodes, nodeID)
		}
	}
	clear(v.dirty)
	list := make([]pool.Node, 0, len(v.nodes))
	for _, id := range slices.Sorted(maps.Keys(v.nodes)) {
		list = append(list, *v.nodes[id])
	}
	return list, v.reported
}

func (v *View) nodeOf(s State, n *drover.Node) *pool.Node {
	m := &pool.Node{ID: n.ID, Intent: n.Attributes[gate.AttributeInstance], Lost: n.Status != drover.NodeStatusReady}
	r := &m.Report
	r.Ready, r.Drained = n.Status == drover.NodeStatusReady, n.SchedulingEligibility != drover.NodeEligible || n.Drain
	r.Broken = n.Attributes[v.cfg.BrokenAttribute]
	r.Total, r.Attributes, r.Movable, r.Jobs = n.Total(), constraintNames(n), true, []ledger.Use{}
	if r.Broken != "" {
		r.Total, r.Attributes = drover.Capacity{}, nil // it is not what others of its kind will be
	}
	if at, err := time.Parse(time.RFC3339, n.Attributes[v.cfg.InterruptedAttribute]); err == nil {
		r.InterruptAt = at
	}
	for a := range s.UnfinishedByNode(n.ID) {
		used := a.AllocatedResources.Used()
		r.Jobs = append(r.Jobs, ledger.Use{Job: drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}, Used: used})
		r.Used = r.Used.Add(used)
		if a.Job != nil && a.Job.Type == drover.JobTypeSystem {
			continue // runs wherever there is a machine: it keeps none
		}
		r.Work++
		r.Movable = r.Movable && movable(a)
	}
	return m
}

// movable reports whether the allocation's work can go on elsewhere: services, and runners that nobody has claimed.
func movable(a *drover.Allocation) bool {
	return a.Claim == nil && a.Job != nil && a.Job.Type == drover.JobTypeService
}

// constraintNames are the node's attributes by what follows "attr." in constraints, and the others by their whole name.
func constraintNames(n *drover.Node) map[string]string {
	out := make(map[string]string, len(n.Attributes)+len(n.Meta)+2)
	for k, v := range n.Attributes {
		if !strings.HasPrefix(k, "unique.") { // another machine will have another
			out[k] = v
		}
	}
	for k, v := range n.Meta {
		out["meta."+k] = v
	}
	out["node.datacenter"] = n.Datacenter
	out["node.class"], out["node.pool"] = n.NodeClass, n.NodePool
	return out
}
