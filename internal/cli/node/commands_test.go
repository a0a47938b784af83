package node_test

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

const (
	first  = "91c30000-0000-0000-0000-000000000000"
	second = "91d40000-0000-0000-0000-000000000000"
)

func world() map[string]string {
	return map[string]string{
		"GET /v1/agent/self": `{"stats": {"client": {"node_id": "` + first + `"}}}`,
		"GET /v1/nodes": `[
			{"ID": "` + first + `", "Name": "n1", "Datacenter": "dc1", "NodePool": "default", "Status": "ready",
				"SchedulingEligibility": "eligible"},
			{"ID": "` + second + `", "Name": "n2", "Datacenter": "dc2", "NodeClass": "big", "Drain": true, "Status": "down"}
		]`,
		"GET /v1/node/" + first: `{"ID": "` + first + `", "Name": "n1", "Datacenter": "dc1", "Status": "ready", "HTTPAddr": "10.0.0.1:4646",
			"Attributes": {"os.name": "debian", "os.version": "13", "kernel.name": "linux", "kernel.version": "6.1", "cpu.arch": "amd64",
				"drover.version": "1.2"},
			"Meta": {"rack": "r1", "row": "2"}, "NodeResources": {"Cpu": {"CpuShares": 4000}, "Memory": {"MemoryMB": 8192},
				"Disk": {"DiskMB": 1024}},
			"Drivers": {"docker": {"Detected": true, "Healthy": false, "HealthDescription": "no daemon"}, "raw_exec": {"Detected": true,
				"Healthy": true}},
			"Events": [{"Timestamp": "2026-01-01T00:00:00Z", "Subsystem": "Cluster", "Message": "Node registered"},
				{"Timestamp": "2026-01-02T00:00:00Z", "Subsystem": "Drain", "Message": "Node drain set", "Details": {"by": "me"}}],
			"DrainStrategy": {"StartedAt": "2026-01-02T00:00:00Z", "ForceDeadline": "2026-01-02T01:00:00Z"}}`,
		"GET /v1/node/" + first + "/allocations": `[{"ID": "a1", "Name": "web.g[0]", "ClientStatus": "running", "DesiredStatus": "run",
			"AllocatedResources": {"Tasks": {"t": {"Cpu": {"CpuShares": 500}, "Memory": {"MemoryMB": 256}}}, "Shared": {"DiskMB": 300}}}]`,
		"GET /v1/node/" + second:                  `{"ID": "` + second + `", "Name": "n2", "Status": "down"}`,
		"GET /v1/node/" + second + "/allocations": `[]`,
		"GET /v1/client/stats": `{"CPU": [{"TotalPercent": 10}, {"TotalPercent": 30}], "Memory": {"Used": 1048576, "Total": 4194304},
			"AllocDirStats": {"Used": 1024, "Size": 2048, "Mountpoint": "/data"}, "Uptime": 3661}`,
		"PUT /v1/node/" + first + "/eligibility": `{}`,
		"PUT /v1/node/" + first + "/purge":       `{}`,
		"PUT /v1/node/" + first + "/drain":       `{}`,
		"GET /v1/drain/plan": `{"NodeID": "` + first + `", "Hidden": 3, "Moves": [
			{"AllocID": "a1", "Name": "web.g[0]", "Namespace": "default", "Fate": "moves", "ToNodeID": "b2", "ToNodeName": "n2"},
			{"AllocID": "a2", "Name": "big.g[0]", "Namespace": "default", "Fate": "no room", "Why": ["not enough memory on 1 node"]}]}`,
	}
}

func TestNodesAreListed(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{Args: "node status", Out: []string{"91c30000 n1 dc1 default - no eligible ready\n", "91d40000 n2 dc2 - big yes - down\n"}},
		clitest.Case{Args: "node status -verbose", Out: []string{first}},
		clitest.Case{Args: "node status -json", Out: []string{`"Name": "n2"`}},
		clitest.Case{Args: "node status -t {{range.}}{{.Name}}{{end}}", Out: []string{"n1n2\n"}},
		clitest.Case{Args: "node status a b", Code: 2, Err: []string{"2 arguments given"}},
	)
	api.Set("GET /v1/nodes", "[]")
	api.Check(
		clitest.Case{Args: "node status", Out: []string{"There are no nodes."}},
		clitest.Case{Args: "node status n1", Code: 3, Err: []string{`there is no node "n1"`}},
	)
	api.Set("GET /v1/nodes", "! 500 broken")
	api.Check(clitest.Case{Args: "node status", Code: 1, Err: []string{"broken"}},
		clitest.Case{Args: "node status n1", Code: 1, Err: []string{"broken"}})
}

func TestANodeIsShown(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	shown := []string{
		"ID = " + first + "\n", "Draining = since 2026-01-0", ", by force at 2026-01-0", "System = debian 13, linux 6.1, amd64\n",
		"Meta = rack=r1, row=2\n", "docker yes no no daemon\n", "raw_exec yes yes -\n",
		"allocated 500 MHz 256.0 MiB 300.0 MiB\nof 4000 MHz 8.0 GiB 1.0 GiB\n", "Drain Node drain set by=me\n", "a1 web.g[0]",
	}
	api.Check(
		clitest.Case{Args: "node status 91c3", Out: shown, Not: []string{"Attributes", "Machine"}},
		clitest.Case{Args: "node status n1", Out: shown},
		clitest.Case{Args: "node status -self", Out: shown, Asks: []string{"GET /v1/agent/self", "GET /v1/node/" + first}},
		clitest.Case{Args: "node status -verbose n1", Out: []string{"Attributes\n", "os.name = debian\n"}},
		clitest.Case{
			Args: "node status -stats n1", Asks: []string{"/v1/client/stats?node_id=" + first},
			Out: []string{"CPU = 20.0 % of 2 cores\n", "Memory = 1.0 MiB of 4.0 MiB\n", "Disk = 1.0 KiB of 2.0 KiB (/data)\n", "Up for = 1h1m\n"},
		},
		clitest.Case{Args: "node status n2", Out: []string{"Status = down\n", "Drivers\nThere are none.\n", "Events\nThere are none.\n"}},
		clitest.Case{Args: "node status -json n1", Out: []string{`"HTTPAddr": "10.0.0.1:4646"`}},
		clitest.Case{Args: "node status -t {{.Name}} n1", Out: []string{"n1\n"}},
		clitest.Case{Args: "node status -self n1", Code: 2, Err: []string{"name a node, or give -self"}},
		clitest.Case{Args: "node status 91", Code: 2, Err: []string{`2 nodes begin with "91":`, first + " n1 ready", second + " n2 down"}},
	)
	api.Set("GET /v1/node/"+first+"/allocations", "! 500 broken")
	api.Check(clitest.Case{Args: "node status n1", Code: 1, Err: []string{"broken"}})
}

// TestTheAgentsOwnNode is the only one where the agent is none.
func TestTheAgentsOwnNode(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Set("GET /v1/agent/self", `{"stats": {}}`)
	api.Check(clitest.Case{Args: "node status -self", Code: 2, Err: []string{"is no node, and there are 2: name one"}})
	api.Set("GET /v1/nodes", `[{"ID": "`+first+`", "Name": "n1"}]`)
	api.Check(clitest.Case{Args: "node status -self -t {{.Name}}", Out: []string{"n1\n"}})
	api.Set("GET /v1/agent/self", "! 500 broken")
	api.Check(clitest.Case{Args: "node drain -enable -self", Code: 1, Err: []string{"broken"}})
}

func TestEligibility(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "node eligibility -enable n1", Out: []string{"Node 91c30000 (n1) is eligible.\n"},
			Asks: []string{`{"Eligibility":"eligible"}`},
		},
		clitest.Case{Args: "node eligibility -disable -self", Out: []string{"is ineligible.\n"}, Asks: []string{`{"Eligibility":"ineligible"}`}},
		clitest.Case{Args: "node eligibility -enable -disable n1", Code: 2, Err: []string{"give either -enable or -disable"}},
		clitest.Case{Args: "node eligibility -enable", Code: 2, Err: []string{"name a node, or give -self"}},
		clitest.Case{Args: "node eligibility -enable nope", Code: 3},
		clitest.Case{Args: "node purge n1", Out: []string{"Node 91c30000 (n1) is forgotten.\n"}},
		clitest.Case{Args: "node purge nope", Code: 3},
	)
	api.Set("PUT /v1/node/"+first+"/eligibility", "! 400 the node is draining")
	api.Check(clitest.Case{Args: "node eligibility -enable n1", Code: 2, Err: []string{"the node is draining"}, Not: []string{"is eligible"}})
}

func TestADrainIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Set("GET /v1/node/"+first+"/allocations", `[
		{"ID": "a1", "ClientStatus": "running"}, {"ID": "a2", "ClientStatus": "running"}, {"ID": "a3", "ClientStatus": "complete"},
		{"ID": "s1", "ClientStatus": "running", "Job": {"Type": "system"}}, {"ID": "s2", "ClientStatus": "running", "Job": {"Type": "sysbatch"}}]
---
[{"ID": "a1", "ClientStatus": "running"}]
---
[{"ID": "a1", "ClientStatus": "running"}]
---
[]`)
	api.Check(clitest.Case{
		Args: "node drain -enable -deadline 10m -ignore-system -move-batch n1",
		Out: []string{
			"==> Node 91c30000 (n1) is draining\n    2 allocations left\n    1 allocation left\n    nothing changes: if the machine is gone, " +
				"'drover node purge 91c30000' has it all placed elsewhere\n    0 allocations left\n==> Node 91c30000 is drained\n",
		},
		Asks: []string{`"Deadline":600000000000`, "/allocations?index=0&namespace=%2A&wait=60s", "index=7"},
	})
	api.Check(
		clitest.Case{Args: "node drain -enable -detach n1", Asks: []string{`"Deadline":3600000000000`}, Not: []string{"left"}},
		clitest.Case{Args: "node drain -enable -force -yes -detach n1", Asks: []string{`"Deadline":-1`}},
		clitest.Case{Args: "node drain -enable -no-deadline -detach n1", Asks: []string{`"Deadline":0`}},
		clitest.Case{Args: "node drain -disable n1", Out: []string{"is no longer draining.\n"}, Asks: []string{`{"MarkEligible":true,"NodeID":`}},
		clitest.Case{Args: "node drain -disable -keep-ineligible n1", Asks: []string{`{"MarkEligible":false,"NodeID":`}},
		clitest.Case{Args: "node drain -dry-run -disable n1", Code: 2, Err: []string{"or -dry-run"}},
		clitest.Case{
			Args: "node drain -dry-run -ignore-system n1", Asks: []string{"GET /v1/drain/plan?ignore_system=true&move_batch=false&node_id=" + first},
			Out: []string{
				"a1 web.g[0] default moves b2 (n2)\n", "a2 big.g[0] default no room not enough memory on 1 node\n",
				"3 more are of jobs that the token may not read.\n",
			},
			Not: []string{"draining"},
		},
		clitest.Case{Args: "node drain n1", Code: 2, Err: []string{"give either -enable or -disable"}},
		clitest.Case{Args: "node drain -enable -deadline soon n1", Code: 2, Err: []string{"invalid argument"}},
		clitest.Case{Args: "node drain -enable nope", Code: 3, Err: []string{`there is no node "nope"`}},
	)
	api.Set("GET /v1/node/"+first+"/allocations", `[{"ID": "a1", "ClientStatus": "running"}]`)
	api.Set("GET /v1/node/"+first, `{"ID": "`+first+`", "Name": "n1"}`)
	api.Check(clitest.Case{
		Args: "node drain -enable n1", Code: 1, Out: []string{"1 allocation left\n"}, Not: []string{"is drained"},
		Err: []string{"somebody ended the drain of node 91c30000: 1 allocation left"},
	})
	api.Set("GET /v1/node/"+first+"/allocations", "[{\"ID\": \"a1\", \"ClientStatus\": \"running\"}]\n---\n[]")
	api.Check(clitest.Case{Args: "node drain -enable n1", Out: []string{"1 allocation left\n    0 allocations left\n==> Node 91c30000 is " +
		"drained"}})
	api.Set("GET /v1/node/"+first, `{"ID": "`+first+`", "Name": "n1", "Status": "down", "DrainStrategy": {}}`)
	api.Set("GET /v1/node/"+first+"/allocations", "[{\"ID\": \"a1\", \"ClientStatus\": \"running\"}]\n---\n[]")
	api.Check(clitest.Case{Args: "node drain -enable -force n1", Out: []string{"1 allocation left\n    the node is down: what it has is " +
		"lost\n    0 allocations left\n==> Node 91c30000 is drained"}})
	api.Set("GET /v1/node/"+first, "{\"ID\": \""+first+"\", \"Name\": \"n1\"}\n---\n! 404 node not found")
	api.Set("GET /v1/node/"+first+"/allocations", `[{"ID": "a1", "ClientStatus": "running"}]`)
	api.Check(clitest.Case{Args: "node drain -enable n1", Out: []string{"==> Node 91c30000 was purged\n"}})
	api.Set("GET /v1/node/"+first+"/allocations", "! 500 broken")
	api.Set("GET /v1/node/"+first, `{"ID": "`+first+`", "Name": "n1"}`)
	api.Check(clitest.Case{Args: "node drain -enable n1", Code: 1, Err: []string{"broken"}})
	api.Set("PUT /v1/node/"+first+"/drain", "! 409 another drain runs")
	api.Check(clitest.Case{Args: "node drain -enable n1", Code: 1, Err: []string{"another drain runs"}, Not: []string{"is draining"}})
}

func TestNodePools(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/node/pools":         `[{"Name": "gpu", "Description": "fast ones", "ModifyIndex": 4, "NodeIdentityTTL": 3600000000000}]`,
		"PUT /v1/node/pools":         `{}`,
		"DELETE /v1/node/pool/a%2Fb": `{}`,
		"DELETE /v1/node/pool/a/b":   `{}`,
	})
	api.Check(
		clitest.Case{Args: "node pool list", Out: []string{"gpu fast ones 4\n"}},
		clitest.Case{Args: "node pool list -json", Out: []string{`"NodeIdentityTTL": 3600000000000`}},
		clitest.Case{Args: "node pool list -t {{range.}}{{.Name}}{{end}}", Out: []string{"gpu\n"}},
		clitest.Case{
			Args: "node pool apply -description fast -meta a=b -meta c=d gpu", Out: []string{"Node pool \"gpu\" was applied.\n"},
			Asks: []string{`"Description":"fast"`},
		},
		clitest.Case{Args: "node pool apply -meta =b gpu", Code: 2, Err: []string{`-meta "=b": want key=value`}},
		clitest.Case{Args: "node pool apply", Code: 2},
		clitest.Case{
			Args: "node pool delete a/b", Out: []string{"Node pool \"a/b\" was deleted.\n"},
			Asks: []string{"DELETE /v1/node/pool/a%2Fb"},
		},
	)
	api.Set("GET /v1/node/pools", "[]")
	api.Set("PUT /v1/node/pools", "! 400 the name is not good")
	api.Check(
		clitest.Case{Args: "node pool list", Out: []string{"There are no node pools."}},
		clitest.Case{Args: "node pool apply ä", Code: 2, Err: []string{"the name is not good"}, Not: []string{"was applied"}},
		clitest.Case{Args: "node pool delete other", Code: 1, Err: []string{"no answer"}, Not: []string{"was deleted"}},
	)
}

// Drivers are counted over all nodes; one that was not found anywhere is listed too, as a node says what it lacks for it.
func TestDriversOfTheNodesAreListed(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{"GET /v1/nodes": `[
		{"ID": "` + second + `", "Name": "n2", "Status": "down", "Drivers": {"docker": {"Detected": true, "Healthy": false,
			"HealthDescription": "no daemon"}, "java": {"HealthDescription": "no java"}}},
		{"ID": "` + first + `", "Name": "n1", "Status": "ready", "Drivers": {"docker": {"Detected": true, "Healthy": true}}}]`})
	api.Check(
		clitest.Case{Args: "plugin status", Out: []string{
			"Plugin  Type    Healthy on  Unhealthy on\n", "docker  driver  1           1\n", "java    driver  0           0\n",
		}, Asks: []string{"GET /v1/nodes"}},
		clitest.Case{Args: "plugin status docker", Out: []string{
			"Node      Name  Status  Detected  Healthy  Says\n", "91c30000  n1    ready   yes       yes      -\n",
			"91d40000  n2    down    yes       no       no daemon\n",
		}},
		clitest.Case{Args: "plugin status -t {{.NodesHealthy}} docker", Out: []string{"1\n"}},
		clitest.Case{Args: "plugin status -type csi", Out: []string{"There are no plugins.\n"}},
		clitest.Case{Args: "plugin status -type csi docker", Code: 3},
		clitest.Case{Args: "plugin status nope", Code: 3, Err: []string{`no node has a driver "nope"`}},
	)
	api.Set("GET /v1/nodes", `[]`)
	api.Check(clitest.Case{Args: "plugin status -json", Out: []string{"[]"}})
}
