package grant

import (
	"math/rand/v2"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/network"
)

// Ask is what one allocation of a group wants of a node.
type Ask struct {
	// Exact says that ports, cores or devices are wanted: what is given differs from node to node.
	Exact bool
	// Device says that devices are wanted, and Liking that some are liked more than others.
	Device, Liking bool

	group *drover.TaskGroup
	// capacity is what the group asks for without the MHz of reserved cores, which differ between nodes.
	capacity drover.Capacity
	cores    int
	plain    *drover.AllocatedResources // shared by all allocations of a group that wants nothing exact
}

// NewAsk reads what a group wants. With oversubscribed its tasks may use more memory than they reserve.
func NewAsk(g *drover.TaskGroup, oversubscribed bool) *Ask {
	a := &Ask{group: g, capacity: g.Asked(), Exact: wantsPorts(g.Networks)}
	for _, t := range g.Tasks {
		if r := t.Resources; r != nil {
			a.cores += r.Cores
			a.Exact = a.Exact || wantsPorts(r.Networks) || r.Cores > 0 || len(r.Devices) > 0
			a.Device = a.Device || len(r.Devices) > 0
			a.Liking = a.Liking || slices.ContainsFunc(r.Devices, func(d *drover.RequestedDevice) bool { return len(d.Affinities) > 0 })
		}
	}
	a.plain = a.resources(oversubscribed)
	return a
}

// wantsPorts reports whether any port is asked for. A network without ports costs nothing on a node.
func wantsPorts(networks []*network.Resource) bool {
	for _, n := range networks {
		if len(n.ReservedPorts)+len(n.DynamicPorts) > 0 {
			return true
		}
	}
	return false
}

// On returns the divisible part on a node: cores are worth what they are worth there.
func (a *Ask) On(n *drover.Node) drover.Capacity {
	if a.cores == 0 {
		return a.capacity
	}
	c := a.capacity
	c.CPU += int64(a.cores) * perCore(n)
	return c
}

// Short names what there is too little of on a node that lacks the dimension. It is "cores" if all would fit but for their MHz,
// since who asks for cores does not ask for MHz.
func (a *Ask) Short(used, total drover.Capacity, dimension string) string {
	if a.cores == 0 {
		return dimension
	}
	if fits, other := used.Add(a.capacity).Fits(total); !fits {
		return other
	}
	return "cores"
}

// perCore is the MHz of one of the node's cores.
func perCore(n *drover.Node) int64 {
	if n.NodeResources == nil || n.NodeResources.Cpu.TotalCpuCores == 0 {
		return 0
	}
	return n.NodeResources.Cpu.CpuShares / int64(n.NodeResources.Cpu.TotalCpuCores)
}

// resources is what every allocation of the group holds, wherever it is.
func (a *Ask) resources(oversubscribed bool) *drover.AllocatedResources {
	out := &drover.AllocatedResources{Tasks: make(map[string]*drover.AllocatedTaskResources, len(a.group.Tasks))}
	for _, t := range a.group.Tasks {
		held := &drover.AllocatedTaskResources{}
		if r := t.Resources; r != nil {
			held.Cpu.CpuShares = int64(r.CPU)
			held.Memory.MemoryMB = int64(r.MemoryMB)
			if oversubscribed {
				held.Memory.MemoryMaxMB = int64(r.MemoryMaxMB)
			}
		}
		out.Tasks[t.Name] = held
		if t.Lifecycle != nil {
			if out.TaskLifecycles == nil {
				out.TaskLifecycles = map[string]*drover.TaskLifecycle{}
			}
			out.TaskLifecycles[t.Name] = t.Lifecycle
		}
	}
	if a.group.EphemeralDisk != nil {
		out.Shared.DiskMB = int64(a.group.EphemeralDisk.SizeMB)
	}
	return out
}

// Bounded reports whether a grant on the node depends on what its allocations hold.
func (a *Ask) Bounded(n *drover.Node) bool { return a.Exact || n.NodeMaxAllocs > 0 }

// Devices reports whether the node has free what is asked for of its devices, and how much those are liked that it would give.
// That is from -1 to 1: the mean of the requests that have affinities.
func (a *Ask) Devices(n *drover.Node, h *Hold, m *feasible.Matcher) (free bool, liked float64) {
	g := &granting{matcher: m, node: n, hold: h, devices: map[string]bool{}}
	sum, requests := 0.0, 0
	for _, t := range a.group.Tasks {
		if t.Resources == nil {
			continue
		}
		for _, d := range t.Resources.Devices {
			got, liked := g.device(d)
			if got == nil {
				return false, 0
			}
			if len(d.Affinities) > 0 {
				sum, requests = sum+liked, requests+1
			}
		}
	}
	return true, sum / float64(max(requests, 1))
}

// Grant gives the exact things out of what is free on the node; what it holds may be nil unless the ask is bounded there.
// It takes nothing: the caller adds what it uses to the hold. Without success it returns nil and what there was too
// little of. The first dynamic port is tried at random.
func (a *Ask) Grant(n *drover.Node, h *Hold, m *feasible.Matcher, rng *rand.Rand) (*drover.AllocatedResources, string) {
	if n.NodeMaxAllocs > 0 && h.allocs >= n.NodeMaxAllocs {
		return nil, "max allocations on the node"
	}
	if !a.Exact {
		return a.plain, ""
	}
	// All allocations of the group share the plain resources, so what is given to one goes into a copy.
	out := new(*a.plain)
	out.Tasks = make(map[string]*drover.AllocatedTaskResources, len(a.plain.Tasks))
	g := &granting{
		matcher: m, rng: rng, node: n, hold: h,
		ports: map[int]bool{}, cores: map[uint16]bool{}, devices: map[string]bool{},
	}
	for _, network := range a.group.Networks {
		got, failed := g.network(network)
		if failed != "" {
			return nil, failed
		}
		out.Shared.Networks = append(out.Shared.Networks, got)
		out.Shared.Ports = append(out.Shared.Ports, g.mappings(got)...)
	}
	for _, t := range a.group.Tasks {
		held := new(*a.plain.Tasks[t.Name])
		if failed := g.task(t.Resources, held); failed != "" {
			return nil, failed
		}
		out.Tasks[t.Name] = held
	}
	return out, ""
}
