package scheduler

import (
	"slices"
	"strconv"

	"github.com/drover-project/drover"
)

// ask is what one allocation of a group wants of a node.
type ask struct {
	group      *drover.TaskGroup
	capacity   drover.Capacity
	cores      int
	wantsPorts bool
	wantsExact bool                       // ports, cores or devices: what is given differs from node to node
	plain      *drover.AllocatedResources // shared by all allocations of a group that wants nothing exact
}

func newAsk(g *drover.TaskGroup, oversubscribed bool) *ask {
	a := &ask{group: g, capacity: g.Asked(), wantsPorts: wantsPorts(g.Networks)}
	a.wantsExact = a.wantsPorts
	for _, t := range g.Tasks {
		if r := t.Resources; r != nil {
			a.cores += r.Cores
			a.wantsPorts = a.wantsPorts || wantsPorts(r.Networks)
			a.wantsExact = a.wantsExact || a.wantsPorts || r.Cores > 0 || len(r.Devices) > 0
		}
	}
	a.plain = a.resources(oversubscribed)
	return a
}

func wantsPorts(networks []*drover.NetworkResource) bool {
	for _, n := range networks {
		if len(n.ReservedPorts)+len(n.DynamicPorts) > 0 {
			return true
		}
	}
	return false
}

// on returns the divisible part on a node: cores are worth what they are worth there.
func (a *ask) on(n *drover.Node) drover.Capacity {
	if a.cores == 0 {
		return a.capacity
	}
	c := a.capacity
	c.CPU += int64(a.cores) * perCore(n)
	return c
}

// perCore is the MHz of one of the node's cores.
func perCore(n *drover.Node) int64 {
	if n.NodeResources == nil || n.NodeResources.Cpu.TotalCpuCores == 0 {
		return 0
	}
	return n.NodeResources.Cpu.CpuShares / int64(n.NodeResources.Cpu.TotalCpuCores)
}

// resources is what every allocation of the group holds, wherever it is.
func (a *ask) resources(oversubscribed bool) *drover.AllocatedResources {
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

// grant gives the exact things out of what is free on the node. It returns nil and what there was too little of, and
// then has taken nothing.
func (a *ask) grant(d *deps, n *drover.Node, h *hold) (*drover.AllocatedResources, string) {
	if n.NodeMaxAllocs > 0 && h.allocs >= n.NodeMaxAllocs {
		return nil, "max allocations on the node"
	}
	if !a.wantsExact {
		return a.plain, ""
	}
	out := new(*a.plain)
	out.Tasks = make(map[string]*drover.AllocatedTaskResources, len(a.plain.Tasks))
	g := &granting{deps: d, node: n, hold: h, ports: map[int]bool{}, cores: map[uint16]bool{}, devices: map[string]bool{}}
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

// granting is one attempt; what it took is not in hold yet.
type granting struct {
	*deps
	node    *drover.Node
	hold    *hold
	ports   map[int]bool
	cores   map[uint16]bool
	devices map[string]bool
}

func (g *granting) task(r *drover.Resources, held *drover.AllocatedTaskResources) string {
	if r == nil {
		return ""
	}
	if r.Cores > 0 {
		held.Cpu.ReservedCores = g.pick(r.Cores)
		if len(held.Cpu.ReservedCores) < r.Cores {
			return "cores"
		}
		held.Cpu.CpuShares += int64(r.Cores) * perCore(g.node)
	}
	for _, d := range r.Devices {
		got := g.device(d)
		if got == nil {
			return "devices"
		}
		held.Devices = append(held.Devices, got)
	}
	for _, network := range r.Networks {
		got, failed := g.network(network)
		if failed != "" {
			return failed
		}
		held.Networks = append(held.Networks, got)
	}
	return ""
}

// pick takes the lowest free cores, fewer than asked if there are not enough.
func (g *granting) pick(count int) []uint16 {
	var got []uint16
	if g.node.NodeResources == nil {
		return nil
	}
	for _, c := range slices.Sorted(slices.Values(g.node.NodeResources.Cpu.ReservableCpuCores)) {
		if len(got) < count && !g.hold.cores[c] && !g.cores[c] {
			g.cores[c] = true
			got = append(got, c)
		}
	}
	return got
}

// network answers a network request with port numbers.
func (g *granting) network(want *drover.NetworkResource) (*drover.NetworkResource, string) {
	got := new(*want)
	got.ReservedPorts, got.DynamicPorts = slices.Clone(want.ReservedPorts), slices.Clone(want.DynamicPorts)
	for _, p := range got.ReservedPorts {
		if (g.hold.ports[p.Value] || g.ports[p.Value]) && !p.IgnoreCollision {
			return nil, "network: reserved port collision " + p.Label + "=" + strconv.Itoa(p.Value)
		}
		g.ports[p.Value] = true
	}
	for i := range got.DynamicPorts {
		port := g.dynamic()
		if port == 0 {
			return nil, "network: dynamic port selection failed"
		}
		got.DynamicPorts[i].Value = port
		if got.DynamicPorts[i].To == -1 {
			got.DynamicPorts[i].To = port
		}
	}
	if got.IP == "" {
		got.IP = hostIP(g.node, "")
	}
	return got, ""
}

// dynamic takes the first free port at or behind a random one, 0 if there is none.
func (g *granting) dynamic() int {
	low, high := drover.MinDynamicPort, drover.MaxDynamicPort
	if r := g.node.NodeResources; r != nil && r.MinDynamicPort > 0 && r.MaxDynamicPort >= r.MinDynamicPort {
		low, high = r.MinDynamicPort, r.MaxDynamicPort
	}
	span := high - low + 1
	start := g.rng.IntN(span)
	for i := range span {
		p := low + (start+i)%span
		if !g.hold.ports[p] && !g.ports[p] {
			g.ports[p] = true
			return p
		}
	}
	return 0
}

func (g *granting) mappings(n *drover.NetworkResource) []drover.PortMapping {
	var out []drover.PortMapping
	for _, list := range [][]drover.Port{n.ReservedPorts, n.DynamicPorts} {
		for _, p := range list {
			out = append(out, drover.PortMapping{
				Label: p.Label, Value: p.Value, To: p.To, HostIP: hostIP(g.node, p.HostNetwork),
				IgnoreCollision: p.IgnoreCollision,
			})
		}
	}
	return out
}

// hostIP returns the node's address in a host network; "" and "default" mean the first.
func hostIP(n *drover.Node, network string) string {
	if r := n.NodeResources; r != nil {
		for _, nn := range r.NodeNetworks {
			for _, a := range nn.Addresses {
				if a.Alias == network || network == "" || network == "default" {
					return a.Address
				}
			}
		}
		for _, nr := range r.Networks {
			if nr.IP != "" {
				return nr.IP
			}
		}
	}
	return n.Attributes["unique.network.ip-address"]
}
