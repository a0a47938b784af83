package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
)

// fleetBlock is a fleet on this machine whose machines run raw processes too.
func fleetBlock(more string) string {
	return `server {
  heartbeat_grace   = "6s"
  min_heartbeat_ttl = "2s"
}
fleet {
  provider "local" {
    type = "loopback"
    max  = 8
  }
  pool "std" {
    provider    = "local"
    node_pool   = "default"
    idle        = "3s"
    adopt_grace = "4s"
    user_data   = <<EOT
${config}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
EOT
    ` + more + `
    type "small" {
      cpu    = 1000
      memory = 512
      price  = 0.05
    }
    type "big" {
      cpu    = 4000
      memory = 2048
      price  = 0.18
    }
  }
}`
}

// fleetAgent returns the arguments of a server without a node, whose machines find it again after a restart.
func fleetAgent(t *testing.T, more string) []string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() { endMachines(t, data) })
	return append([]string{"-server", "-rpc-port", freePort(t)}, config(t, data, fleetBlock(more))...)
}

// endMachines ends what a test that failed left: machines outlive their server.
func endMachines(t *testing.T, data string) {
	t.Helper()
	eventually(t, "the end of all machines", func() (bool, string) {
		left := processesOf(data)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it just ended
		}
		return len(left) == 0, fmt.Sprint(left)
	})
	unmountBelow(t, data)
	records, err := filepath.Glob(filepath.Join(data, "fleet", "*", "lo-*", "machine.json"))
	require.NoError(t, err)
	for _, file := range records {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var m struct {
			ID      string
			EndedAt time.Time
			Dying   bool
		}
		require.NoError(t, json.Unmarshal(text, &m))
		group := "drover-" + m.ID
		if !m.EndedAt.IsZero() && !m.Dying {
			assert.Empty(t, folders(group), "control groups of a machine that the provider ended")
		}
		eventually(t, "the end of the machine's control groups", func() (bool, string) {
			_ = removeGroup(group) // of machines that outlived their server
			left := folders(group)
			return len(left) == 0, fmt.Sprint(left)
		})
	}
}

func fleetJob(id string, count int, script string) *api.Job {
	j := rawJob(id, "batch", "/bin/sh", "-c", script)
	j.TaskGroups[0].Count = &count
	cpu, memory := 800, 64
	j.TaskGroups[0].Tasks[0].Resources = &api.Resources{CPU: &cpu, MemoryMB: &memory}
	return j
}

// lines returns what all allocations of a job appended to a file.
func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	list := strings.Fields(string(data))
	slices.Sort(list)
	return list
}

// A server without a node gets a job and an environment: machines come, the work runs, the machines go.
func TestMachinesComeForWorkAndGo(t *testing.T) {
	t.Parallel()
	a := start(t, fleetAgent(t, "")...)
	c := a.nomad()
	nodes, _, err := c.Nodes().List(nil)
	require.NoError(t, err)
	require.Empty(t, nodes)
	ran, seen := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "seen")
	_, _, err = c.Jobs().Register(fleetJob("work", 3, "until [ -e "+seen+" ]; do sleep 0.05; done; echo $NOMAD_ALLOC_INDEX >> "+ran), nil)
	require.NoError(t, err)
	// Costs go to who has the machine when the fleet looks: the job stays until it has looked.
	eventually(t, "a machine that the job uses", func() (bool, string) {
		list := a.machines()
		return slices.ContainsFunc(list, func(i fleet.Instance) bool { return i.Used.CPU > 0 }), fmt.Sprintf("%+v", list)
	})
	require.NoError(t, os.WriteFile(seen, nil, 0o600))
	a.putEnvironment("10", 2)
	eventually(t, "the job's end", func() (bool, string) { got := lines(t, ran); return len(got) == 3, fmt.Sprint(got) })
	require.Equal(t, []string{"0", "1", "2"}, lines(t, ran))
	runner := a.claim(10)
	require.Equal(t, "bought\r\n", a.execute(runner, map[string]any{"command": "echo bought"}, "").stdout)
	for _, i := range a.machines() {
		require.Equal(t, "std", i.Pool)
		var x fleet.Explanation
		a.fleet("GET", "instance/"+i.ID, "", &x)
		require.NotEmpty(t, x.Text)
	}
	a.refusesTokenTwice(t, c)
	status, text := a.ask("DELETE", "/execution-environments/10", nil)
	require.Equal(t, 204, status, text)
	a.noMachine(t)

	var report fleet.CostReport
	a.fleet("GET", "cost?by=job", "", &report)
	require.Positive(t, report.Total)
	var jobs []string
	for _, l := range report.Lines {
		jobs = append(jobs, l.Key)
	}
	require.Contains(t, jobs, "default/work")
	require.Contains(t, jobs, "idle")
	var audit []fleet.Audit
	a.fleet("GET", "audit", "", &audit)
	require.NotEmpty(t, audit)
}

// refusesTokenTwice joins with the configuration, and so the token, that a machine got.
func (a *agent) refusesTokenTwice(t *testing.T, c *api.Client) {
	t.Helper()
	var given string
	for _, i := range a.machines() {
		if i.State == fleet.InstanceActive { // its agent has used it
			given = filepath.Join(dataOf(a), "fleet", "local", i.ProviderID, "user-data.hcl")
		}
	}
	require.FileExists(t, given)
	data := filepath.Join(t.TempDir(), "thief")
	thief := launch(t, append([]string{"-config", given}, config(t, data, "")...)...) // with TLS it does not even start
	eventually(t, "the refusal", func() (bool, string) {
		text := thief.Output()
		return strings.Contains(text, "good for one node") || strings.Contains(text, "was used by node"), text
	})
	id, err := os.ReadFile(filepath.Join(data, "client", "client-id"))
	require.NoError(t, err)
	nodes, _, err := c.Nodes().List(nil) // machines may still come
	require.NoError(t, err)
	for _, n := range nodes {
		require.NotEqual(t, strings.TrimSpace(string(id)), n.ID)
	}
	thief.Stop()
}

var dataDir = regexp.MustCompile(`data_dir=(\S+)`)

func dataOf(a *agent) string { return dataDir.FindStringSubmatch(a.Output())[1] }

// The server is killed while machines boot, and again while work runs on them: nothing is lost, nothing runs twice.
func TestAKilledServerFindsItsMachinesAgain(t *testing.T) {
	t.Parallel()
	args := fleetAgent(t, "")
	a := start(t, args...)
	ran, release := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "release")
	_, _, err := a.nomad().Jobs().Register(fleetJob("work", 3,
		"echo $NOMAD_ALLOC_INDEX >> "+ran+"; while [ ! -e "+release+" ]; do sleep 0.1; done"), nil)
	require.NoError(t, err)
	eventually(t, "a machine", func() (bool, string) { n := len(a.machines()); return n > 0, "" })
	a.PullThePlug() // the creates may or may not have happened
	a = start(t, args...)
	eventually(t, "the work", func() (bool, string) { got := lines(t, ran); return len(got) == 3, fmt.Sprint(got, a.machines()) })
	held := a.machines()
	status, text := a.fleet("PUT", "instance/"+held[0].ID+"/hold", `{"Reason":"a test"}`, nil)
	require.Equal(t, 204, status, text)
	a.PullThePlug()
	a = start(t, args...)
	eventually(t, "the machines", func() (bool, string) {
		busy := 0
		for _, i := range a.machines() {
			if i.State == fleet.InstanceActive && i.Work > 0 {
				busy++
			}
		}
		return busy == 3, fmt.Sprint(a.machines())
	})
	require.Len(t, a.machines(), 3)
	for _, i := range a.machines() {
		require.True(t, i.Adopted)
		require.Equal(t, i.ID == held[0].ID, i.Behavior == fleet.BehaviorHold, "who is held stays held")
	}
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	eventually(t, "the held machine to be the last", func() (bool, string) {
		list := a.machines()
		return len(list) == 1 && list[0].ID == held[0].ID && list[0].Work == 0, fmt.Sprint(list)
	})
	require.Equal(t, []string{"0", "1", "2"}, lines(t, ran), "each ran once")
	status, text = a.fleet("PUT", "instance/"+held[0].ID+"/kill", `{"Reason":"enough"}`, nil)
	require.Equal(t, 204, status, text)
	a.noMachine(t)
}

// Pools over the API: bad ones are refused with the field, good ones work at once, and end with their machines.
func TestPoolsOverTheAPI(t *testing.T) {
	t.Parallel()
	a := start(t, fleetAgent(t, "")...)
	const types = `"Types":[{"Name":"t","Price":1,"Capacity":{"CPU":1,"MemoryMB":1}}],"Zones":["a"]}`
	bad := map[string]string{
		`{"Provider":"nobody",` + types:                                                                    "there is no provider",
		`{"Provider":"local","Types":[],"Zones":["a"]}`:                                                    "Types: must have at least one type",
		`{"Provider":"local","Min":2,"Max":1,` + types:                                                     "Max: must be at least Min",
		`{"Provider":"local","Min":2,"Budget":{"PerHour":1},` + types:                                      "can't hold the minimum",
		`{"Provider":"local","Schedule":[{"Cron":"99 * * * *","Duration":3600000000000,"Min":1}],` + types: "syntax error in minute field",
		`{"Colour":1}`: "Colour",
	}
	for body, want := range bad {
		status, text := a.fleet("PUT", "pool/extra", body, nil)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, want)
	}
	status, text := a.fleet("PUT", "pool/std",
		`{"Provider":"local",`+types, nil)
	require.Equal(t, 409, status, text)
	status, text = a.fleet("PUT", "pool/extra",
		`{"Provider":"local","Zones":["a"],"Min":1,"AdoptGrace":1000000000,`+
			`"Types":[{"Name":"t","Price":1,"Capacity":{"CPU":500,"MemoryMB":128}}]}`, nil)
	require.Equal(t, 200, status, text)
	eventually(t, "the minimum", func() (bool, string) {
		list := a.machines()
		return len(list) == 1 && list[0].Pool == "extra" && list[0].State == fleet.InstanceActive, fmt.Sprint(list)
	})
	nodes, _, err := a.nomad().Nodes().List(nil)
	require.NoError(t, err)
	require.Equal(t, "extra", nodes[0].NodePool)
	status, text = a.fleet("DELETE", "pool/extra", "", nil)
	require.Equal(t, 204, status, text)
	a.noMachine(t)
	eventually(t, "the pool's end", func() (bool, string) {
		status, _ := a.fleet("GET", "pool/extra", "", nil)
		return status == 404, fmt.Sprint(status)
	})
	status, text = a.request("POST", "/arvados/v1/dispatch/instances/hold?instance_id=nobody", "")
	require.Equal(t, 404, status, text)
	require.Contains(t, text, "errors")
}

// An agent that keeps nothing leaves no machines either.
func TestADevAgentTakesItsMachinesAlong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fleet.hcl")
	require.NoError(t, os.WriteFile(path, []byte(fleetBlock("min = 1")+"\nclient {\n  enabled = false\n}\n"), 0o600))
	a := start(t, "-dev", "-config", path)
	eventually(t, "the machine", func() (bool, string) {
		list := a.machines()
		return len(list) == 1 && list[0].State == fleet.InstanceActive, fmt.Sprint(list)
	})
	data := dataOf(a)
	require.NotEmpty(t, processesOf(filepath.Join(data, "fleet")))
	a.Stop()
	require.Empty(t, processesOf(filepath.Join(data, "fleet")))
}

// A machine that dies with its work is noticed by its silence, and by the cloud's list: the work runs on another one.
func TestAMachineThatDiesIsReplaced(t *testing.T) {
	t.Parallel()
	args := fleetAgent(t, "")
	a := start(t, args...)
	c := a.nomad()
	j := fleetJob("svc", 1, "sleep 1000")
	kind := "service"
	j.Type = &kind
	_, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
	before := allocation(t, c, "svc", "running")
	old := a.machines()
	require.Len(t, old, 1)
	for _, pid := range processesOf(filepath.Join(dataOf(a), "fleet", "local", old[0].ProviderID)) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it just ended
	}
	eventually(t, "the work on another machine", func() (bool, string) {
		list, _, err := c.Jobs().Allocations("svc", false, nil)
		require.NoError(t, err)
		for _, x := range list {
			if x.ID != before.ID && x.ClientStatus == "running" {
				return x.NodeID != before.NodeID, x.NodeID
			}
		}
		return false, fmt.Sprint(len(list), " allocations")
	})
	eventually(t, "the dead machine's end", func() (bool, string) {
		list := a.machines()
		return len(list) == 1 && list[0].ID != old[0].ID, fmt.Sprint(list)
	})
	var x fleet.Explanation
	a.fleet("GET", "instance/"+old[0].ID, "", &x)
	require.Equal(t, fleet.InstanceGone, x.Instance.State)
	require.NotEmpty(t, x.Text)
	_, _, err = c.Jobs().Deregister("svc", true, nil)
	require.NoError(t, err)
	a.noMachine(t)
}

// The cloud gives notice that it takes a machine back: another is bought at once, and the work moves there before.
func TestWorkLeavesAMachineThatIsTakenBack(t *testing.T) {
	t.Parallel()
	a := start(t, fleetAgent(t, "")...)
	c := a.nomad()
	j := fleetJob("svc", 1, "sleep 1000")
	kind := "service"
	j.Type = &kind
	_, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
	before := allocation(t, c, "svc", "running")
	old := a.machines()
	require.Len(t, old, 1)
	status, text := a.fleet("POST", "instance/"+old[0].ID+"/interrupt", "", nil)
	require.Equal(t, 204, status, text)
	eventually(t, "the work on another machine", func() (bool, string) {
		list, _, err := c.Jobs().Allocations("svc", false, nil)
		require.NoError(t, err)
		for _, x := range list {
			if x.ID != before.ID && x.ClientStatus == "running" {
				return x.NodeID != before.NodeID, x.NodeID
			}
		}
		return false, fmt.Sprint(len(list), " allocations")
	})
	eventually(t, "the old machine's end", func() (bool, string) {
		list := a.machines()
		return len(list) == 1 && list[0].ID != old[0].ID, fmt.Sprint(list)
	})
	_, _, err = c.Jobs().Deregister("svc", true, nil)
	require.NoError(t, err)
	a.noMachine(t)
}
