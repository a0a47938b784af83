package feasible

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

// A port that asks for a network of the machine is not bound to another one.
func TestPortsNeedTheirHostNetwork(t *testing.T) {
	t.Parallel()
	node := func(aliases ...string) *drover.Node {
		n := &drover.Node{
			Meta: map[string]string{"net": "private"}, Attributes: map[string]string{"unique.network.ip-address": "192.0.2.1"},
			NodeResources: &drover.NodeResources{Networks: []*network.Resource{{IP: "192.0.2.1"}}},
		}
		for _, a := range aliases {
			n.NodeResources.NodeNetworks = append(n.NodeResources.NodeNetworks, &drover.NodeNetworkResource{
				Addresses: []drover.NodeNetworkAddress{{Alias: a, Address: "of " + a}},
			})
		}
		return n
	}
	for _, c := range []struct {
		name, network, want, address string
		node                         *drover.Node
	}{
		{"none", "", "", "192.0.2.1", node()},
		{"the first", "default", "", "of default", node("default", "private")},
		{"named", "private", "", "of private", node("default", "private")},
		{"by meta", "${meta.net}", "", "of private", node("default", "private")},
		{"missing", "public", `missing host network "public" for port "http"`, "", node("default", "private")},
		{"missing, without any", "public", `missing host network "public" for port "http"`, "", node()},
	} {
		ports := []network.Port{{Label: "http", HostNetwork: c.network}}
		for _, g := range []*drover.TaskGroup{
			{Networks: []*network.Resource{{DynamicPorts: ports}}},
			{Networks: []*network.Resource{{ReservedPorts: ports}}},
			{Tasks: []*drover.Task{{Resources: &drover.Resources{Networks: []*network.Resource{{DynamicPorts: ports}}}}}},
		} {
			require.Equal(t, c.want, NewFilter(NewMatcher(), &drover.Job{}, g, 0).Refusal(c.node, -1), c.name)
			require.Equal(t, c.want, Lacks(&drover.Job{}, g, c.node, nil), c.name)
		}
		require.Equal(t, c.address, HostAddress(c.node, c.network), c.name)
	}
}

// Who asks for a driver that no node has is told which would do.
func TestTheNearestDriver(t *testing.T) {
	t.Parallel()
	well := &drover.DriverInfo{Detected: true, Healthy: true}
	n := &drover.Node{Drivers: map[string]*drover.DriverInfo{
		"sandbox": well, "docker": {Detected: true}, "raw_exec": well, "mock_driver": well, "java": {HealthDescription: "no java"},
	}}
	for name, want := range map[string]string{
		"exec": "missing drivers: exec (the nearest that is there: sandbox)", "docker": "missing drivers: docker",
		"podman":    "missing drivers: podman (the nearest that is there: sandbox)",
		"java":      "missing drivers: java (no java)",
		"qemu":      "missing drivers: qemu",
		"mok_drivr": "missing drivers: mok_drivr (the nearest that is there: mock_driver)",
	} {
		require.Equal(t, want, missingDriver(n, name))
	}
}

func TestANetworkOfCNI(t *testing.T) {
	t.Parallel()
	n := &drover.Node{
		Attributes: map[string]string{"plugins.cni.network.broken.missing": `plugin "x" is not in /opt/cni/bin`},
		NodeResources: &drover.NodeResources{NodeNetworks: []*drover.NodeNetworkResource{
			{Mode: "host", Addresses: []drover.NodeNetworkAddress{{Alias: "default", Address: "192.0.2.1"}}}, {Mode: "cni/mine"},
		}},
	}
	for mode, want := range map[string]string{
		"cni/mine": "", "bridge": "", "host": "",
		"cni/broken": `missing network "cni/broken": plugin "x" is not in /opt/cni/bin`,
		"cni/other":  `missing network "cni/other": the node has no CNI configuration of that name`,
	} {
		g := &drover.TaskGroup{Networks: []*network.Resource{{Mode: mode}}}
		require.Equal(t, want, NewFilter(NewMatcher(), &drover.Job{}, g, 0).Refusal(n, -1), mode)
		require.Equal(t, want, Lacks(&drover.Job{}, g, n, nil), mode)
		require.Equal(t, want == "", NewFilter(NewMatcher(), &drover.Job{}, g, 0).Refusal(n, -1) == "")
	}
	g := &drover.TaskGroup{Networks: []*network.Resource{{Mode: "cni/mine"}}}
	require.NotEmpty(t, NewFilter(NewMatcher(), &drover.Job{}, g, 0).Refusal(&drover.Node{}, -1), "a node of before")
	require.Equal(t, "192.0.2.1", HostAddress(n, ""))
}
