package drover

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFaultsOfAGroup(t *testing.T) {
	t.Parallel()
	refused(t, JobTypeService, ofGroup, []fault{
		{`{"Name": ""}`, "job.group[0].Name: must be set"},
		{`{"Name": "a/b"}`, "job.group[a/b].Name: must not contain '/'"},
		{`{"Count": -1}`, "job.group[g].Count: must be from 0 to 1000000, got -1"},
		{`{"Count": 1099511627776}`, "job.group[g].Count: must be from 0 to 1000000"},
		{`{"Count": 1000001}`, "job: asks for 1000001 allocations, the limit is 1000000"},
		{`{"EphemeralDisk": {"SizeMB": 9}}`, "job.group[g].EphemeralDisk.SizeMB: must be from 10 to 2147483647, got 9"},
		{`{"EphemeralDisk": {"SizeMB": 1125899906842624}}`, "job.group[g].EphemeralDisk.SizeMB: must be from 10 to 2147483647"},
		{`{"ShutdownDelay": -1}`, "job.group[g].ShutdownDelay: must not be negative"},
		{`{"MaxRunDuration": 0}`, "job.group[g].MaxRunDuration: must be positive"},
		{`{"MaxRunDuration": 1}`, "job.group[g].MaxRunDuration: only batch and sysbatch jobs"},
		{`{"Tasks": []}`, "job.group[g].Tasks: must have at least one task"},
		{`{"Tasks": [null]}`, "job.group[g].Tasks[0]: must not be null"},
		{`{"Pool": {"Size": -1}}`, "job.group[g].Pool.Size: must be from 0 to 1000000, got -1"},
		{`{"Pool": {"Size": 3, "MaxRunners": -1}}`, "job.group[g].Pool.MaxRunners: must not be negative"},
		{`{"Pool": {"Size": 3, "MaxRunners": 2}}`, "job.group[g].Pool.MaxRunners: must be at least Size (3) or 0, got 2"},
		{`{"Scaling": {"Min": -1}}`, "job.group[g].Scaling.Min: must not be negative"},
		{`{"Scaling": {"Min": 5, "Max": 2}}`, "job.group[g].Scaling.Max: must be at least Min (5), got 2"},
		{`{"Scaling": {"Min": 5}}`, "job.group[g].Scaling: the group's Count 1 is not from Min 5"},
	})
	refused(t, JobTypeSystem, ofGroup, []fault{
		{`{"Count": 2}`, "job.group[g].Count: a system job runs once on each node: must be 0 or 1, got 2"},
		{`{"Affinities": [{"Operand": "=", "Weight": 1}]}`, "job.group[g].Affinities: system jobs run on every node"},
		{`{"Spreads": [{"Attribute": "x", "Weight": 1}]}`, "job.group[g].Spreads: system jobs run on every node"},
		{`{"Pool": {"Size": 1}}`, "job.group[g].Pool: only service and batch jobs have pools"},
	})
}

func TestFaultsOfANetwork(t *testing.T) {
	t.Parallel()
	ports := func(static, dynamic string) string {
		return fmt.Sprintf(`{"Services": null, "Networks": [{"Mode": "host", "ReservedPorts": [%s], "DynamicPorts": [%s]}]}`, static, dynamic)
	}
	refused(t, JobTypeService, ofGroup, []fault{
		{`{"Networks": [{"Mode": "host"}, {"Mode": "host"}]}`, "job.group[g].Networks: only one network a group, got 2"},
		{`{"Networks": [null]}`, "job.group[g].Networks[0]: must not be null"},
		{`{"Networks": [{"Mode": "macvlan"}]}`, `job.group[g].Networks.Mode: must be host, bridge, none or cni/NAME, got "macvlan"`},
		{`{"Networks": [{"Mode": "cni/"}]}`, `job.group[g].Networks.Mode: the name behind cni/ must be letters, digits`},
		{`{"Networks": [{"Mode": "cni/../x"}]}`, `job.group[g].Networks.Mode: the name behind cni/ must be letters, digits`},
		{`{"Networks": [{"Mode": "cni/x"}], "Pool": {"Size": 1}}`, "job.group[g].Networks.Mode: warm runners are on the node's bridge"},
		{`{"Networks": [{"Mode": "bridge", "CNI": {"Args": {"A": "b"}}}]}`, `job.group[g].Networks.CNI: needs mode cni/NAME, got mode "bridge"`},
		{`{"Networks": [{"Mode": "cni/x", "CNI": {"Args": {"A": "b;c"}}}]}`, "Networks.CNI.Args: the value of A must have no semicolon"},
		{`{"Networks": [{"Mode": "cni/x", "CNI": {"Args": {"NOMAD_JOB_ID": "b"}}}]}`, "job.group[g].Networks.CNI.Args: NOMAD_JOB_ID is given by"},
		{`{"Networks": [{"Mode": "bridge", "Hostname": "a b"}]}`, `job.group[g].Networks.Hostname: must be up to 63 letters`},
		{`{"Networks": [{"Mode": "bridge", "DNS": {"Servers": ["dns"]}}]}`, `job.group[g].Networks.DNS.Servers: must be addresses, got "dns"`},
		{`{"Networks": [{"Mode": "bridge", "DNS": {"Options": ["a\nb"]}}]}`, `job.group[g].Networks.DNS.Options: must be words without spaces`},
		{ports(``, `{"Value": 1}`), "job.group[g].Networks: a port has no label"},
		{ports(``, `{"Label": "http", "Value": -1}`), "job.group[g].port[http].Value: must be from 1 to 65535, got -1"},
		{ports(``, `{"Label": "http", "To": 65536}`), "job.group[g].port[http].To: must be from -1 to 65535, got 65536"},
		{ports(`{"Label": "a", "Value": 80}`, `{"Label": "a"}`), "job.group[g].port[a]: is defined twice"},
		{ports(`{"Label": "a"}`, ``), "job.group[g].port[a].Value: a static port must be from 1 to 65535, got 0"},
		{ports(`{"Label": "a", "Value": 80}, {"Label": "b", "Value": 80}`, ``), `job.group[g].port[b]: static port 80 is used by "a" already`},
	})
	j := valid()
	shared := `{"Label": "a", "Value": 80}, {"Label": "b", "Value": 80, "IgnoreCollision": true}`
	require.NoError(t, json.Unmarshal([]byte(ports(shared, ``)), ofGroup(j)))
	require.NoError(t, j.Validate(), "a collision that is meant")
	refused(t, JobTypeService, ofTask, []fault{
		{`{"Resources": {"CPU": 100, "MemoryMB": 100, "Networks": [{"Mode": "cni/x"}]}}`, "Networks.Mode: a task has no CNI network of its own"},
	})
	j = valid()
	require.NoError(t, json.Unmarshal([]byte(`{"Networks": [{"Mode": "cni/x.y-z", "Hostname": "${node.unique.name}",
		"CNI": {"Args": {"A": "${meta.b}"}},
		"DNS": {"Servers": ["10.0.0.1", "::1", "${attr.dns}"], "Searches": ["a.b"], "Options": ["ndots:2"]}}], "Services": null}`), ofGroup(j)))
	require.NoError(t, j.Validate())
}

func TestFaultsOfServicesAndVolumes(t *testing.T) {
	t.Parallel()
	service := func(rest string) string {
		return fmt.Sprintf(`{"Services": [{"Name": "web", "Provider": "nomad"%s}]}`, rest)
	}
	faults := []fault{
		{`{"Services": [null]}`, ".Services[0]: must not be null"},
		{`{"Services": [{"Name": "web", "Provider": "etcd"}]}`, ".service[web].Provider: must be nomad or consul"},
		{`{"Services": [{"Name": "a b", "Provider": "nomad"}]}`, ".service[a b].Name: must be usable in DNS"},
		{service(`, "AddressMode": "lan"`), ".service[web].AddressMode: must be auto, host, alloc, alloc_ipv6, driver"},
		{service(`, "AddressMode": "host", "Address": "x"`), ".service[web].Address: needs the address mode auto"},
		{service(`, "OnUpdate": "panic"`), ".service[web].OnUpdate: must be require_healthy, ignore_warnings, ignore"},
		{service(`, "PortLabel": "x"`), `.service[web].PortLabel: the group has no port "x"`},
	}
	refused(t, JobTypeService, ofGroup, faults)
	refused(t, JobTypeService, ofTask, faults)
	for _, port := range []string{"http", "8080", "${NOMAD_PORT_x}", ""} {
		j := valid()
		j.TaskGroups[0].Services[0].PortLabel = port
		require.NoError(t, j.Validate(), port)
	}
	each := `{"Volumes": {"v": {"Type": "host", "Source": "x", "PerAlloc": true}}`
	refused(t, JobTypeService, ofGroup, []fault{
		{`{"Volumes": {"v": null}}`, "job.group[g].volume[v]: must not be null"},
		{`{"Volumes": {"v": {"Type": "nfs", "Source": "x"}}}`, `job.group[g].volume[v].Type: must be host, got "nfs"`},
		{`{"Volumes": {"v": {"Type": "host"}}}`, "job.group[g].volume[v].Source: must be set"},
		{
			`{"Volumes": {"v": {"Type": "host", "Source": "x", "AccessMode": "multi-node-multi-writer"}}}`,
			"job.group[g].volume[v].AccessMode: must be one of single-node-reader-only, single-node-writer, single-node-single-writer, " +
				`single-node-multi-writer, got "multi-node-multi-writer"`,
		},
		{
			`{"Volumes": {"v": {"Type": "host", "Source": "x", "AccessMode": "single-node-reader-only"}}}`,
			"job.group[g].volume[v].AccessMode: single-node-reader-only takes read_only = true",
		},
		{
			`{"Volumes": {"v": {"Type": "host", "Source": "x", "AttachmentMode": "block-device"}}}`,
			"job.group[g].volume[v].AttachmentMode: block-device is not supported: use file-system",
		},
		{each + `, "Update": {"Canary": 1}}`, "job.group[g].volume[v].PerAlloc: must be false with canaries"},
		{
			`{"Volumes": {"v": {"Type": "host", "Source": "x", "Sticky": true}}, "Pool": {"Size": 1}}`,
			"job.group[g].volume[v].Sticky: must be false in a warm pool",
		},
		{each + `, "Pool": {"Size": 1}}`, "job.group[g].volume[v].PerAlloc: must be false in a warm pool"},
	})
	refused(t, JobTypeSystem, ofGroup, []fault{{each + `}`, "job.group[g].volume[v].PerAlloc: must be false in a system job"}})
	refused(t, JobTypeService, ofTask, []fault{
		{`{"VolumeMounts": [null]}`, "job.group[g].task[t].VolumeMounts[0]: must not be null"},
		{`{"VolumeMounts": [{"Volume": "v"}]}`, `job.group[g].task[t].VolumeMounts[0].Volume: "v" is not a volume of the group`},
		{`{"VolumeMounts": [{"Volume": "v"}]}`, "job.group[g].task[t].VolumeMounts[0].Destination: must be set"},
	})
}
