package grant

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/network"
)

// granting is one attempt; what it took is not in hold yet.
type granting struct {
	matcher *feasible.Matcher
	rng     *rand.Rand
	node    *drover.Node
	hold    *Hold
	// These are taken by this attempt, and given up with it: two tasks of a group must not get the same.
	ports   map[int]bool
	cores   map[uint16]bool
	devices map[string]bool
}

// task gives a task its cores, devices and ports and writes them into held. It returns what there was too little of, ""
// on success; after a failure held is not to be used. Reserved cores add their MHz to the CPU share.
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
		got, _ := g.device(d)
		if got == nil {
			return "devices: " + d.Name
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
func (g *granting) network(want *network.Resource) (*network.Resource, string) {
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
		// To -1 means the same number inside the allocation's network as outside.
		if got.DynamicPorts[i].To == -1 {
			got.DynamicPorts[i].To = port
		}
	}
	if got.IP == "" {
		got.IP = feasible.HostAddress(g.node, "")
	}
	return got, ""
}

// dynamic takes the first free port at or behind a random one, 0 if there is none.
func (g *granting) dynamic() int {
	low, high := network.MinDynamicPort, network.MaxDynamicPort
	if r := g.node.NodeResources; r != nil && r.MinDynamicPort > 0 && r.MaxDynamicPort >= r.MinDynamicPort {
		low, high = r.MinDynamicPort, r.MaxDynamicPort
	}
	span := high - low + 1
	// With a random start, plans that are made at the same time rarely choose the same port.
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

// mappings returns the ports of an answered network with the address of the host that each is bound to, reserved ones
// first.
func (g *granting) mappings(n *network.Resource) []network.PortMapping {
	var out []network.PortMapping
	for _, list := range [][]network.Port{n.ReservedPorts, n.DynamicPorts} {
		for _, p := range list {
			out = append(out, network.PortMapping{
				Label: p.Label, Value: p.Value, To: p.To, HostIP: feasible.HostAddress(g.node, p.HostNetwork),
				IgnoreCollision: p.IgnoreCollision,
			})
		}
	}
	return out
}

// device takes instances of the device group that is liked best among those with enough healthy free ones, the first of equal ones.
func (g *granting) device(want *drover.RequestedDevice) (got *drover.AllocatedDeviceResource, liked float64) {
	count := max(want.Count, 1)
	for _, d := range feasible.Devices(g.node) {
		if !g.matcher.Device(want, d) {
			continue
		}
		var ids []string
		for _, i := range d.Instances {
			if i.Healthy && !g.hold.devices[i.ID] && !g.devices[i.ID] && uint64(len(ids)) < count {
				ids = append(ids, i.ID)
			}
		}
		// All instances come from one group of equal devices.
		if l := g.matcher.LikedDevice(want, d); uint64(len(ids)) == count && (got == nil || l > liked) {
			got = &drover.AllocatedDeviceResource{Vendor: d.Vendor, Type: d.Type, Name: d.Name, DeviceIDs: ids}
			liked = l
		}
	}
	if got != nil {
		for _, id := range got.DeviceIDs {
			g.devices[id] = true
		}
	}
	return got, liked
}
