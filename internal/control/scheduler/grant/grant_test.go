package grant

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/network"
)

// machine has four cores of 1000 MHz, two healthy devices, ports 20000 to 20003 and an address.
func machine() *drover.Node {
	return &drover.Node{ID: "n", NodeResources: &drover.NodeResources{
		Cpu:            drover.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4, ReservableCpuCores: []uint16{3, 1, 2, 0}},
		MinDynamicPort: 20000, MaxDynamicPort: 20003,
		NodeNetworks: []*drover.NodeNetworkResource{{Addresses: []drover.NodeNetworkAddress{
			{Alias: "default", Address: "10.0.0.1", ReservedPorts: "20000"}, {Alias: "public", Address: "1.2.3.4"},
		}}},
		Devices: []*drover.NodeDeviceResource{{Vendor: "acme", Type: "gpu", Name: "x1", Instances: []*drover.NodeDevice{
			{ID: "d1", Healthy: true}, {ID: "d2"}, {ID: "d3", Healthy: true},
		}}},
	}}
}

func groupOf(r *drover.Resources, networks ...*network.Resource) *drover.TaskGroup {
	return &drover.TaskGroup{
		Name: "g", EphemeralDisk: &drover.EphemeralDisk{SizeMB: 300}, Networks: networks,
		Tasks: []*drover.Task{{Name: "t", Resources: r}},
	}
}

func give(g *drover.TaskGroup, n *drover.Node, h *Hold) (*drover.AllocatedResources, string) {
	return NewAsk(g, false).Grant(n, h, feasible.NewMatcher(), rand.New(rand.NewPCG(1, 2)))
}

func empty(n *drover.Node) *Hold { return NewHold(n, slices.Values([]*drover.Allocation(nil))) }

func TestWhatCanBeDividedIsSharedByAll(t *testing.T) {
	t.Parallel()
	g := groupOf(&drover.Resources{CPU: 500, MemoryMB: 100, MemoryMaxMB: 200})
	a := NewAsk(g, false)
	require.False(t, a.Exact)
	require.False(t, a.Bounded(machine()), "nothing that its allocations hold matters")
	one, lacking := a.Grant(machine(), nil, nil, nil)
	require.Empty(t, lacking)
	two, _ := a.Grant(machine(), nil, nil, nil)
	require.Same(t, one, two)
	require.EqualValues(t, 500, one.Tasks["t"].Cpu.CpuShares)
	require.Zero(t, one.Tasks["t"].Memory.MemoryMaxMB)
	require.EqualValues(t, 300, one.Shared.DiskMB)
	more, _ := NewAsk(g, true).Grant(machine(), nil, nil, nil)
	require.EqualValues(t, 200, more.Tasks["t"].Memory.MemoryMaxMB, "oversubscribed")
}

// Cores are worth what they are worth on the node, and the lowest free ones are given.
func TestCores(t *testing.T) {
	t.Parallel()
	g, n := groupOf(&drover.Resources{Cores: 2, MemoryMB: 10}), machine()
	require.EqualValues(t, 2000, NewAsk(g, false).On(n).CPU)
	require.Zero(t, NewAsk(g, false).On(&drover.Node{}).CPU, "a node that says nothing of its cores")
	h := empty(n)
	first, _ := give(g, n, h)
	require.Equal(t, []uint16{0, 1}, first.Tasks["t"].Cpu.ReservedCores)
	require.EqualValues(t, 2000, first.Tasks["t"].Cpu.CpuShares)
	h.Add(first)
	second, _ := give(g, n, h)
	require.Equal(t, []uint16{2, 3}, second.Tasks["t"].Cpu.ReservedCores)
	h.Add(second)
	none, lacking := give(g, n, h)
	require.Nil(t, none)
	require.Equal(t, "cores", lacking)
}

func TestDevices(t *testing.T) {
	t.Parallel()
	n := machine()
	h := empty(n)
	want := func(name string, count uint64) *drover.TaskGroup {
		return groupOf(&drover.Resources{Devices: []*drover.RequestedDevice{{Name: name, Count: count}}})
	}
	for _, name := range []string{"gpu", "acme/gpu", "acme/gpu/x1"} {
		got, lacking := give(want(name, 2), n, h)
		require.Empty(t, lacking, name)
		require.Equal(t, []string{"d1", "d3"}, got.Tasks["t"].Devices[0].DeviceIDs, "healthy ones")
	}
	one, _ := give(want("gpu", 0), n, h)
	require.Equal(t, []string{"d1"}, one.Tasks["t"].Devices[0].DeviceIDs, "no count is one")
	h.Add(one)
	for _, refused := range []*drover.TaskGroup{want("gpu", 2), want("fpga", 1), want("acme/gpu/x2", 1)} {
		_, lacking := give(refused, n, h)
		require.Equal(t, "devices: "+refused.Tasks[0].Resources.Devices[0].Name, lacking)
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	n := machine()
	h := empty(n)
	static := func(port int, shared bool) *drover.TaskGroup {
		return groupOf(&drover.Resources{}, &network.Resource{ReservedPorts: []network.Port{
			{Label: "s", Value: port, HostNetwork: "public", IgnoreCollision: shared},
		}})
	}
	got, _ := give(static(80, false), n, h)
	require.Equal(t, []network.PortMapping{{Label: "s", Value: 80, HostIP: "1.2.3.4"}}, got.Shared.Ports)
	h.Add(got)
	_, lacking := give(static(80, false), n, h)
	require.Equal(t, "network: reserved port collision s=80", lacking)
	_, lacking = give(static(80, true), n, h)
	require.Empty(t, lacking, "a collision that is meant")
	_, lacking = give(static(20000, false), n, h)
	require.NotEmpty(t, lacking, "reserved by the node")

	dynamic := groupOf(&drover.Resources{}, &network.Resource{DynamicPorts: []network.Port{{Label: "d", To: -1}}})
	seen := map[int]bool{}
	for range 3 {
		got, lacking := give(dynamic, n, h)
		require.Empty(t, lacking)
		p := got.Shared.Ports[0]
		require.Equal(t, p.Value, p.To, "-1 is the port itself")
		require.Equal(t, "10.0.0.1", p.HostIP)
		require.False(t, seen[p.Value])
		seen[p.Value] = true
		h.Add(got)
	}
	_, lacking = give(dynamic, n, h)
	require.Equal(t, "network: dynamic port selection failed", lacking)
	require.Zero(t, dynamic.Networks[0].DynamicPorts[0].Value, "the job stays as it is")
}

func TestABoundOnAllocations(t *testing.T) {
	t.Parallel()
	n := machine()
	n.NodeMaxAllocs = 1
	g := groupOf(&drover.Resources{CPU: 1})
	require.True(t, NewAsk(g, false).Bounded(n))
	h := empty(n)
	got, lacking := give(g, n, h)
	require.Empty(t, lacking)
	h.Add(got)
	_, lacking = give(g, n, h)
	require.Equal(t, "max allocations on the node", lacking)
}

// A hold has what allocations hold that have not ended, and the node's own ports, whatever else its list says.
func TestHold(t *testing.T) {
	t.Parallel()
	n := machine()
	n.ReservedResources = &drover.NodeReservedResources{
		Networks: drover.NodeReservedNetworkResources{ReservedHostPorts: " 22, 100-102,x,5-y,70000-70001"},
	}
	running := &drover.Allocation{NodeID: "n", AllocatedResources: &drover.AllocatedResources{
		Shared: drover.AllocatedSharedResources{Ports: []network.PortMapping{{Value: 8080}}},
		Tasks: map[string]*drover.AllocatedTaskResources{"t": {Networks: []*network.Resource{{
			ReservedPorts: []network.Port{{Value: 81}}, DynamicPorts: []network.Port{{Value: 82}},
		}}}},
	}}
	ended := &drover.Allocation{ClientStatus: drover.AllocClientComplete, AllocatedResources: &drover.AllocatedResources{
		Shared: drover.AllocatedSharedResources{Ports: []network.PortMapping{{Value: 9090}}},
	}}
	h := NewHold(n, slices.Values([]*drover.Allocation{running, ended, {NodeID: "n"}}))
	for _, port := range []int{22, 100, 101, 102, 8080, 81, 82, 20000} {
		require.True(t, h.ports[port], port)
	}
	require.False(t, h.ports[9090])
	require.Len(t, h.ports, 8)
	require.Equal(t, 2, h.allocs, "an allocation without resources counts")
}

// Whatever is granted one after the other, nothing is ever given twice, and a refusal takes nothing.
func TestNothingIsGivenTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := machine()
		h := empty(n)
		ports, cores, devices := map[int]bool{20000: true}, map[uint16]bool{}, map[string]bool{}
		for range rapid.IntRange(1, 8).Draw(t, "asks") {
			r := &drover.Resources{Cores: rapid.IntRange(0, 2).Draw(t, "cores")}
			if rapid.Bool().Draw(t, "device") {
				r.Devices = []*drover.RequestedDevice{{Name: "gpu", Count: 1}}
			}
			asked := &network.Resource{}
			for range rapid.IntRange(0, 2).Draw(t, "dynamic") {
				asked.DynamicPorts = append(asked.DynamicPorts, network.Port{Label: "d"})
			}
			if rapid.Bool().Draw(t, "static") {
				asked.ReservedPorts = []network.Port{{Label: "s", Value: rapid.IntRange(20000, 20003).Draw(t, "port")}}
			}
			before := len(h.ports) + len(h.cores) + len(h.devices)
			got, lacking := give(groupOf(r, asked), n, h)
			if lacking != "" {
				require.Equal(t, before, len(h.ports)+len(h.cores)+len(h.devices))
				continue
			}
			for _, p := range got.Shared.Ports {
				require.False(t, ports[p.Value], "port %d", p.Value)
				ports[p.Value] = true
			}
			for _, c := range got.Tasks["t"].Cpu.ReservedCores {
				require.False(t, cores[c], "core %d", c)
				cores[c] = true
			}
			for _, d := range got.Tasks["t"].Devices {
				require.False(t, devices[d.DeviceIDs[0]])
				devices[d.DeviceIDs[0]] = true
			}
			h.Add(got)
		}
	})
}
