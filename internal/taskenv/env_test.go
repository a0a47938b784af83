package taskenv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

func input() Input {
	task := &drover.Task{
		Name: "web", Env: map[string]string{"A": "${NOMAD_ALLOC_INDEX}-${meta.rack}", "B": "${env[\"NOMAD_TASK_NAME\"]}", "C": "${A}"},
		Meta: map[string]string{"who-am-i": "t"},
	}
	group := &drover.TaskGroup{Name: "g", Tasks: []*drover.Task{task}, Meta: map[string]string{"who-am-i": "g", "x": "${attr.kernel.name}"}}
	return Input{
		Node: &drover.Node{
			ID: "n1", Name: "host", Datacenter: "dc1", NodeClass: "c", NodePool: "default", Attributes: map[string]string{"kernel.name": "linux"},
			Meta: map[string]string{"rack": "r7"},
		},
		Group: group, Task: task, Dirs: Dirs{Shared: "/d/alloc", Local: "/d/web/local", Secrets: "/d/web/secrets"},
		Alloc: &drover.Allocation{
			ID: "12345678-aaaa", Name: "j.g[3]", JobID: "j", Namespace: "default", TaskGroup: "g", Job: &drover.Job{Name: "J", Region: "global"},
			AllocatedResources: &drover.AllocatedResources{
				Tasks: map[string]*drover.AllocatedTaskResources{
					"web": {Cpu: drover.AllocatedCpuResources{
						CpuShares: 100, ReservedCores: []uint16{1, 2},
					}, Memory: drover.AllocatedMemoryResources{MemoryMB: 64, MemoryMaxMB: 128}},
				},
				Shared: drover.AllocatedSharedResources{Ports: []network.PortMapping{{Label: "http-1", Value: 20001, To: 80, HostIP: "10.0.0.1"}}},
			},
		},
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"A": "3-r7", "B": "web", "C": "3-r7",
		"NOMAD_ADDR_http_1": "10.0.0.1:20001", "NOMAD_HOST_ADDR_http_1": "10.0.0.1:20001", "NOMAD_IP_http_1": "10.0.0.1",
		"NOMAD_HOST_IP_http_1": "10.0.0.1",
		"NOMAD_PORT_http_1":    "80", "NOMAD_ALLOC_PORT_http_1": "80", "NOMAD_HOST_PORT_http_1": "20001",
		"NOMAD_ALLOC_DIR": "/d/alloc", "NOMAD_TASK_DIR": "/d/web/local", "NOMAD_SECRETS_DIR": "/d/web/secrets",
		"NOMAD_ALLOC_ID": "12345678-aaaa", "NOMAD_SHORT_ALLOC_ID": "12345678", "NOMAD_ALLOC_NAME": "j.g[3]", "NOMAD_ALLOC_INDEX": "3",
		"NOMAD_TASK_NAME": "web", "NOMAD_GROUP_NAME": "g", "NOMAD_JOB_ID": "j", "NOMAD_JOB_NAME": "J", "NOMAD_NAMESPACE": "default",
		"NOMAD_REGION": "global", "NOMAD_DC": "dc1", "NOMAD_CPU_LIMIT": "100", "NOMAD_CPU_CORES": "1,2", "NOMAD_MEMORY_LIMIT": "64",
		"NOMAD_MEMORY_MAX_LIMIT": "128",
		"NOMAD_META_who_am_i":    "t", "NOMAD_META_WHO_AM_I": "t", "NOMAD_META_x": "linux", "NOMAD_META_X": "linux",
	}
	require.Empty(t, cmp.Diff(want, Build(input()).Vars()))
}

func TestReplace(t *testing.T) {
	t.Parallel()
	e := Build(input())
	for in, want := range map[string]string{
		"plain": "plain", "${NOMAD_TASK_NAME}": "web", "a${node.unique.id}b${node.class}": "an1bc",
		"${unknown} ${": "${unknown} ${", "$${NOMAD_TASK_NAME}": "${NOMAD_TASK_NAME}", "${env.NOMAD_DC}": "dc1", "$HOME": "$HOME",
		"${": "${", "": "", "${}": "${}", "$$": "$$",
	} {
		require.Equal(t, want, e.Replace(in), in)
	}
	got := e.ReplaceConfig(map[string]any{"args": []any{"${NOMAD_DC}", 3, map[string]any{"k": "${attr.kernel.name}"}}, "n": int64(1)})
	require.Empty(t, cmp.Diff(map[string]any{"args": []any{"dc1", 3, map[string]any{"k": "linux"}}, "n": int64(1)}, got))
}

func FuzzReplace(f *testing.F) {
	f.Add("${a}$${b}${")
	e := Build(input())
	f.Fuzz(func(_ *testing.T, s string) { e.Replace(s) })
}

// References to a long variable, or to one that refers to others, grow with each other's product.
func TestReplaceIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	for name, change := range map[string]func(*drover.Task){
		"one text": func(t *drover.Task) { t.Env["BIG"] = strings.Repeat("${attr.long}", 100_000) },
		"many texts": func(t *drover.Task) {
			for i := range 1000 {
				t.Env[fmt.Sprint("V", i)] = "${attr.long}${attr.long}"
			}
		},
		"a chain": func(t *drover.Task) { // maps have no order: some of these meet those before them
			t.Meta["m0"] = long
			for i := range 300 {
				t.Meta[fmt.Sprint("m", i+1)] = strings.Repeat(fmt.Sprintf("${NOMAD_META_m%d}", i), 20)
			}
			t.Env["Z"] = strings.Repeat("${NOMAD_META_m0}", 20)
		},
	} {
		in := input()
		in.Node.Attributes["long"] = long
		change(in.Task)
		e := Build(in)
		require.Equal(t, drover.TooLarge, drover.CodeOf(e.Err()), name)
		require.Equal(t, drover.TooLarge, drover.CodeOf(e.With(nil).Err()), name)
	}
	in := input()
	in.Node.Attributes["long"] = long
	in.Task.Env["FINE"] = "${attr.long}${attr.long}"
	e := Build(in)
	require.NoError(t, e.Err())
	require.Len(t, e.Vars()["FINE"], 2*len(long))
}

func TestAddressesInTheAllocationsOwnNetwork(t *testing.T) {
	t.Parallel()
	in := Input{
		Alloc: &drover.Allocation{AllocatedResources: &drover.AllocatedResources{
			Shared: drover.AllocatedSharedResources{Ports: []network.PortMapping{
				{Label: "http", Value: 20001, To: 80, HostIP: "10.0.0.1"}, {Label: "a-b", Value: 20002, HostIP: "10.0.0.1"},
			}},
		}},
		Group: &drover.TaskGroup{},
	}
	require.NotContains(t, Build(in).Vars(), "NOMAD_ALLOC_IP_http")
	in.Network = &network.Status{InterfaceName: "eth0", Address: "192.0.2.7", AddressIPv6: "2001:db8::7"}
	vars := Build(in).Vars()
	require.Equal(t, "192.0.2.7", vars["NOMAD_ALLOC_IP_http"])
	require.Equal(t, "192.0.2.7:80", vars["NOMAD_ALLOC_ADDR_http"])
	require.Equal(t, "192.0.2.7:20002", vars["NOMAD_ALLOC_ADDR_a_b"])
	require.Equal(t, "eth0", vars["NOMAD_ALLOC_INTERFACE_a_b"])
	require.Equal(t, "10.0.0.1:20001", vars["NOMAD_ADDR_http"])
	in.Network.Address = ""
	require.Equal(t, "[2001:db8::7]:80", Build(in).Vars()["NOMAD_ALLOC_ADDR_http"])
}

func TestNetworksAreInterpolated(t *testing.T) {
	t.Parallel()
	e := Build(Input{
		Node:  &drover.Node{Name: "n1", Meta: map[string]string{"vlan": "7", "dns": "10.0.0.53"}},
		Alloc: &drover.Allocation{Name: "j.g[3]"}, Group: &drover.TaskGroup{},
	})
	given := []*network.Resource{{
		Mode: "cni/x", Hostname: "web-${NOMAD_ALLOC_INDEX}", CNI: &network.CNIConfig{Args: map[string]string{"VLAN": "${meta.vlan}"}},
		DNS: &network.DNSConfig{Servers: []string{"${meta.dns}"}, Searches: []string{"${node.unique.name}.x"}, Options: []string{"a"}},
	}, {Mode: "host"}}
	require.Equal(t, []*network.Resource{{
		Mode: "cni/x", Hostname: "web-3", CNI: &network.CNIConfig{Args: map[string]string{"VLAN": "7"}},
		DNS: &network.DNSConfig{Servers: []string{"10.0.0.53"}, Searches: []string{"n1.x"}, Options: []string{"a"}},
	}, {Mode: "host"}}, e.Networks(given))
	require.Equal(t, "web-${NOMAD_ALLOC_INDEX}", given[0].Hostname, "the job's own is not changed")
}
