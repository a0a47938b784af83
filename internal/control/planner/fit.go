package planner

import (
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/network"
)

// view is a snapshot with the plans that are accepted but not yet in it.
type view struct {
	Snapshot
	over     overlay
	accounts map[string]*quota.Account // by quota, with what is accepted
	accepted map[string]quota.Use      // by namespace, what over adds; nil: not looked at yet
}

// used returns what allocations hold on the node. An accepted allocation that the snapshot has already counts once.
func (v *view) used(nodeID string) drover.Capacity {
	used := v.Used(nodeID)
	for _, a := range v.over[nodeID] {
		used = used.Add(v.growth(a))
	}
	return used
}

// growth returns how much more the node holds once the snapshot has a.
func (v *view) growth(a *drover.Allocation) drover.Capacity {
	want := a.AllocatedResources.Used()
	stored := v.Allocation(a.ID)
	switch {
	case stored == nil:
		return want
	case stored.HoldsResources():
		return want.Sub(stored.AllocatedResources.Used())
	}
	return drover.Capacity{} // it ended meanwhile
}

// fits reports whether the node has room for the allocations, fresh of which are new to it.
func (v *view) fits(node *drover.Node, list []*drover.Allocation, fresh int) bool {
	used := v.used(node.ID)
	listed := map[string]bool{}
	exclusive := false
	for _, a := range list {
		listed[a.ID] = true
		if planned := v.over[node.ID][a.ID]; planned != nil {
			used = used.Sub(v.growth(planned))
		}
		used = used.Add(v.growth(a))
		exclusive = exclusive || holdsExclusive(a.AllocatedResources)
	}
	if ok, _ := used.Fits(node.Total()); !ok {
		return false
	}
	if fresh > 0 && !v.writable(node, list) {
		return false
	}
	if node.NodeMaxAllocs > 0 && fresh > 0 && v.count(node.ID)+fresh > node.NodeMaxAllocs {
		return false
	}
	if !exclusive {
		return true
	}
	taken := exclusiveSet{}
	for a := range v.live(node.ID) {
		if !listed[a.ID] {
			taken.add(a.AllocatedResources) // what is there is there
		}
	}
	for _, a := range list {
		if !taken.add(a.AllocatedResources) {
			return false
		}
	}
	return true
}

// live yields the node's allocations that hold resources, accepted ones included.
func (v *view) live(nodeID string) func(yield func(*drover.Allocation) bool) {
	return func(yield func(*drover.Allocation) bool) {
		over := v.over[nodeID]
		for a := range v.UnfinishedByNode(nodeID) { // what ended holds nothing
			if planned := over[a.ID]; planned != nil {
				a = planned
			}
			if !yield(a) {
				return
			}
		}
		for id, a := range over {
			if v.Allocation(id) == nil && !yield(a) {
				return
			}
		}
	}
}

// count returns how many allocations live on the node, for NodeMaxAllocs.
func (v *view) count(nodeID string) int {
	n := 0
	for range v.live(nodeID) {
		n++
	}
	return n
}

// exclusiveSet holds what only one allocation of a node can have: ports, cores and devices.
type exclusiveSet map[string]struct{}

// holdsExclusive reports whether there is any port, core or device in r; the iteration ends at the first.
func holdsExclusive(r *drover.AllocatedResources) bool {
	return r != nil && !eachExclusive(r, func(string) bool { return false })
}

// add takes what r has, and reports whether all of it was still free.
func (s exclusiveSet) add(r *drover.AllocatedResources) bool {
	if r == nil {
		return true
	}
	free := true
	eachExclusive(r, func(key string) bool {
		if _, taken := s[key]; taken {
			free = false
		}
		s[key] = struct{}{}
		return true
	})
	return free
}

// eachExclusive calls f with a key for each thing until f says false; it reports whether f never did.
func eachExclusive(r *drover.AllocatedResources, f func(key string) bool) bool {
	for _, p := range r.Shared.Ports {
		if !p.IgnoreCollision && p.Value > 0 && !f("port/"+strconv.Itoa(p.Value)) {
			return false
		}
	}
	for _, t := range r.Tasks {
		for _, n := range t.Networks {
			for _, ports := range [][]network.Port{n.ReservedPorts, n.DynamicPorts} {
				for _, p := range ports {
					if !p.IgnoreCollision && p.Value > 0 && !f("port/"+strconv.Itoa(p.Value)) {
						return false
					}
				}
			}
		}
		for _, c := range t.Cpu.ReservedCores {
			if !f("core/" + strconv.Itoa(int(c))) {
				return false
			}
		}
		for _, d := range t.Devices {
			for _, id := range d.DeviceIDs {
				if !f("device/" + d.Vendor + "/" + d.Type + "/" + d.Name + "/" + id) {
					return false
				}
			}
		}
	}
	return true
}
