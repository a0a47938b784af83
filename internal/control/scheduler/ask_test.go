package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
)

// placedOn returns the plan's new allocations.
func placed(out Output) []*drover.Allocation {
	var all []*drover.Allocation
	for _, node := range slices.Sorted(maps.Keys(out.Plan.NodeAllocation)) {
		all = append(all, out.Plan.NodeAllocation[node]...)
	}
	slices.SortFunc(all, func(x, y *drover.Allocation) int { return cmp.Compare(x.Index(), y.Index()) })
	return all
}

func TestPorts(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", func(n *drover.Node) {
		n.NodeResources.MinDynamicPort, n.NodeResources.MaxDynamicPort = 20000, 20005
		n.ReservedResources = &drover.NodeReservedResources{Networks: drover.NodeReservedNetworkResources{ReservedHostPorts: "80,20000-20001,x"}}
		n.NodeResources.NodeNetworks = []*drover.NodeNetworkResource{{Addresses: []drover.NodeNetworkAddress{
			{Alias: "default", Address: "10.0.0.1"}, {Alias: "public", Address: "1.2.3.4"},
		}}}
	})
	j := newJob("web", drover.JobTypeService, 3)
	j.TaskGroups[0].Networks = []*network.Resource{{DynamicPorts: []network.Port{
		{Label: "http", To: -1}, {Label: "admin", To: 9000, HostNetwork: "public"},
	}}}
	w.putJob(j)
	out := w.eval("web")
	all := placed(out)
	require.Len(t, all, 2, "four free ports")
	seen := map[int]bool{}
	for _, a := range all {
		ports := a.AllocatedResources.Shared.Ports
		require.Len(t, ports, 2)
		require.Equal(t, ports[0].Value, ports[0].To)
		require.Equal(t, "10.0.0.1", ports[0].HostIP)
		require.Equal(t, 9000, ports[1].To)
		require.Equal(t, "1.2.3.4", ports[1].HostIP)
		require.Equal(t, ports[0].Value, a.AllocatedResources.Shared.Networks[0].DynamicPorts[0].Value)
		for _, p := range ports {
			require.False(t, seen[p.Value])
			require.True(t, p.Value >= 20002 && p.Value <= 20005, "%d", p.Value)
			seen[p.Value] = true
		}
	}
	require.Equal(t, 1, out.Eval.FailedTGAllocs["g"].DimensionExhausted["network: dynamic port selection failed"])
	require.Zero(t, j.TaskGroups[0].Networks[0].DynamicPorts[0].Value, "the job is untouched")
	require.Equal(t, 1, len(w.eval("web").Eval.FailedTGAllocs), "ports of stored allocations are seen")
}

func TestReservedPortTaken(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", func(n *drover.Node) {
		n.ReservedResources = &drover.NodeReservedResources{Networks: drover.NodeReservedNetworkResources{ReservedHostPorts: "80"}}
	})
	j := newJob("web", drover.JobTypeService, 1)
	j.TaskGroups[0].Networks = []*network.Resource{{ReservedPorts: []network.Port{{Label: "http", Value: 80}}}}
	w.putJob(j)
	require.Contains(t, w.eval("web").Eval.FailedTGAllocs["g"].DimensionExhausted, "network: reserved port collision http=80")
}

// Who asks for more cores than a node has is told of cores, and not of the MHz that they stand for.
func TestCoresThatNoNodeHas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cores, memory int
		want          string
	}{{5, 10, "cores"}, {64, 10, "cores"}, {64, 1 << 20, "memory"}, {4, 10, ""}} {
		w := newWorld()
		w.addNode("n1", nil)
		j := newJob("big", drover.JobTypeService, 1)
		r := j.TaskGroups[0].Tasks[0].Resources
		r.CPU, r.Cores, r.MemoryMB = 0, c.cores, c.memory
		w.putJob(j)
		out := w.eval("big")
		if c.want == "" {
			require.Len(t, placed(out), 1)
			continue
		}
		require.Empty(t, placed(out))
		require.Equal(t, map[string]int{c.want: 1}, out.Eval.FailedTGAllocs["g"].DimensionExhausted)
		require.Contains(t, out.Explanation.Groups[0].Sentence, "1 of 1 nodes are exhausted: "+c.want)
	}
}

func TestCoresAndDevices(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", func(n *drover.Node) {
		n.NodeResources.Devices = []*drover.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "t4", Instances: []*drover.NodeDevice{
			{ID: "g1", Healthy: true}, {ID: "g2", Healthy: false}, {ID: "g3", Healthy: true},
		}}}
	})
	j := newJob("ml", drover.JobTypeBatch, 3)
	r := j.TaskGroups[0].Tasks[0].Resources
	r.CPU, r.Cores, r.Devices = 0, 1, []*drover.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}
	w.putJob(j)
	out := w.eval("ml")
	all := placed(out)
	require.Len(t, all, 2)
	for i, a := range all {
		task := a.AllocatedResources.Tasks["t"]
		require.Equal(t, []uint16{uint16(i)}, task.Cpu.ReservedCores)
		require.EqualValues(t, 1000, task.Cpu.CpuShares)
		require.Equal(t, []string{[]string{"g1", "g3"}[i]}, task.Devices[0].DeviceIDs)
	}
	require.Equal(t, 1, out.Eval.FailedTGAllocs["g"].DimensionExhausted["devices: nvidia/gpu"])
	require.EqualValues(t, 2000, w.Used("n1").CPU)
}

func TestDeviceConstraints(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("none", nil)
	for node, memory := range map[string]int{"small": 8, "big": 16} {
		w.addNode(node, func(n *drover.Node) {
			n.NodeResources.Devices = []*drover.NodeDeviceResource{{
				Vendor: "nvidia", Type: "gpu", Name: node, Attributes: map[string]any{"memory": memory},
				Instances: []*drover.NodeDevice{{ID: node, Healthy: true}},
			}}
		})
	}
	for asks, want := range map[[3]string]string{
		{"${device.ids}", "set_contains", "big"}:   "big",
		{"${device.attr.memory}", ">", "9"}:        "big",
		{"${device.model}", "=", "small"}:          "small",
		{"${device.attr.nothing}", "is_set", ""}:   "",
		{"${device.unknown}", "is_set", ""}:        "",
		{"${device.vendor}", "regexp", "^amd|gpu"}: "",
	} {
		j := newJob("ml", drover.JobTypeBatch, 1)
		j.TaskGroups[0].Tasks[0].Resources.Devices = []*drover.RequestedDevice{{Name: "gpu", Constraints: []*constraint.Constraint{
			{LTarget: asks[0], Operand: asks[1], RTarget: asks[2]},
		}}}
		w.jobs["ml"] = j
		out := Schedule(Input{Eval: &drover.Evaluation{ID: "e", Namespace: "default", JobID: "ml"}, Snapshot: w, Now: w.now})
		if want == "" {
			why := out.Eval.FailedTGAllocs["g"].ConstraintFiltered
			require.Equal(t, 1, why["missing devices: gpu"], "the node that has none: %v", why)
			continue
		}
		require.Equal(t, want, placed(out)[0].NodeID)
	}
}

// TestNetworkModesThatADriverLacks: a driver tells what it has not; of others nothing is assumed.
func TestNetworkModesThatADriverLacks(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("no", func(n *drover.Node) {
		n.Attributes["driver.fake.network.bridge"] = "false"
		n.Attributes["driver.fake.network.bridge.missing"] = "the agent is not root"
	})
	j := newJob("web", drover.JobTypeService, 1)
	j.TaskGroups[0].Networks = []*network.Resource{{Mode: "bridge"}}
	w.putJob(j)
	require.Equal(t, map[string]int{"driver fake has no network mode bridge: the agent is not root": 1},
		w.eval("web").Eval.FailedTGAllocs["g"].ConstraintFiltered)
	j = newJob("own", drover.JobTypeService, 1)
	j.TaskGroups[0].Tasks[0].Config = map[string]any{"network_mode": "bridge"}
	w.putJob(j)
	require.Empty(t, placed(w.eval("own")))
	w.addNode("yes", func(n *drover.Node) { n.Attributes["driver.fake.network.bridge"] = "true" })
	require.Equal(t, "yes", placed(w.eval("web"))[0].NodeID)
	w.addNode("unknown", func(*drover.Node) {})
	j = newJob("many", drover.JobTypeSystem, 1)
	j.TaskGroups[0].Networks = []*network.Resource{{Mode: "bridge"}}
	w.putJob(j)
	require.Equal(t, []string{"unknown", "yes"}, slices.Sorted(maps.Keys(w.eval("many").Plan.NodeAllocation)))
}

func TestNodeMaxAllocsAndOversubscription(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("n1", func(n *drover.Node) { n.NodeMaxAllocs = 2 })
	w.config.MemoryOversubscriptionEnabled = true
	j := newJob("web", drover.JobTypeService, 3)
	j.TaskGroups[0].Tasks[0].Resources.MemoryMaxMB = 1024
	w.putJob(j)
	out := w.eval("web")
	require.Len(t, placed(out), 2)
	require.EqualValues(t, 1024, placed(out)[0].AllocatedResources.Tasks["t"].Memory.MemoryMaxMB)
	require.EqualValues(t, 512, w.Used("n1").MemoryMB)
}

func TestFeasibility(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.addNode("sick", func(n *drover.Node) { n.Drivers["fake"] = &drover.DriverInfo{Detected: true} })
	w.addNode("none", func(n *drover.Node) { n.Drivers = nil })
	w.addNode("ill", func(n *drover.Node) {
		n.Drivers = map[string]*drover.DriverInfo{"mock_driver": {Detected: true, HealthDescription: "no kernel module"}}
	})
	w.addNode("attr", func(n *drover.Node) { n.Drivers, n.Attributes["driver.mock_driver"] = nil, "1" })
	w.addNode("data", func(n *drover.Node) {
		n.HostVolumes = map[string]*drover.HostVolumeInfo{"data": {Path: "/d", ReadOnly: true}}
	})
	w.addNode("other", func(n *drover.Node) { n.NodePool = "gpu" })
	w.addNode("far", func(n *drover.Node) { n.Datacenter = "eu-1" })
	j := newJob("web", drover.JobTypeService, 9)
	j.Datacenters = []string{"dc*"}
	j.TaskGroups[0].Tasks[0].Driver = "mock_driver"
	j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"v": {Type: "host", Source: "data", ReadOnly: true}}
	w.putJob(j)
	out := w.eval("web")
	for _, a := range placed(out) {
		require.Equal(t, "data", a.NodeID)
	}
	m := out.Eval.FailedTGAllocs["g"]
	require.Equal(t, map[string]int{
		"missing drivers: mock_driver": 2, "missing drivers: mock_driver (no kernel module)": 1,
		"missing compatible host volumes": 1,
	}, m.ConstraintFiltered)
	require.Equal(t, map[string]int{"dc1": 5}, m.NodesAvailable)
	require.Equal(t, 6, m.NodesInPool)
	require.Equal(t, 5, m.NodesEvaluated)
	require.Equal(t, 9-len(placed(out)), out.Eval.QueuedAllocations["g"])
	j = newJob("all", drover.JobTypeSystem, 1)
	j.NodePool = drover.AllNodePool
	w.putJob(j)
	require.Equal(t, []string{"far", "other"}, slices.Sorted(maps.Keys(w.eval("all").Plan.NodeAllocation)))
}
