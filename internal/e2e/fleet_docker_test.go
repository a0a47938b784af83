package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/dockerdtest"
	"github.com/drover-project/drover/internal/e2e/program"
)

// dockerd starts a docker daemon of its own with a network, and returns its endpoint, the network, and the address at
// which containers reach this machine. It needs root and Debian's docker.io and busybox-static (scripts/deps);
// DROVER_TEST_DOCKER=off leaves the test out.
func dockerd(t *testing.T) (endpoint, network, gateway string) {
	t.Helper()
	if dockerdtest.Off() {
		require.NotEqual(t, "true", os.Getenv("CI"), "CI has docker")
		t.Skip("DROVER_TEST_DOCKER=off")
	}
	daemon, err := dockerdtest.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, daemon.Stop()) })
	network = "drvfd" + freePort(t)
	command := func(args ...string) string {
		out, err := daemon.Docker(args...)
		require.NoError(t, err)
		return strings.TrimSpace(out)
	}
	command("network", "create", "-o", "com.docker.network.bridge.name="+network, network)
	return daemon.Endpoint, network, command("network", "inspect", network, "-f", "{{(index .IPAM.Config 0).Gateway}}")
}

// Machines that are containers come for work and go. The server is killed in the middle.
func TestMachinesThatAreContainers(t *testing.T) {
	t.Parallel()
	endpoint, network, gateway := dockerd(t)
	args := []string{"-server", "-rpc-port", freePort(t)}
	args = append(args, config(t, filepath.Join(t.TempDir(), "data"), fmt.Sprintf(`insecure = true # in a network of its own
addresses {
  rpc = %q
}
fleet {
  provider "docker" {
    endpoint = %q
    network  = %q
  }
  pool "box" {
    provider    = "docker"
    node_pool   = "default"
    image       = "drover-test/busybox:1"
    idle        = "3s"
    adopt_grace = "4s"
    boot_probe  = "test -x /bin/busybox"
    user_data   = "${config}\nplugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n"
    type "small" {
      cpu    = 1000
      memory = 512
      price  = 0.01
    }
  }
}
`, gateway, endpoint, network))...)
	a := start(t, args...)
	_, _, err := a.nomad().Jobs().Register(fleetJob("work", 2, "sleep 8; hostname"), nil)
	require.NoError(t, err)
	with := func(status string) (found []*api.AllocationListStub, all int) {
		list, _, err := a.nomad().Jobs().Allocations("work", true, nil)
		require.NoError(t, err)
		for _, x := range list {
			if x.ClientStatus == status {
				found = append(found, x)
			}
		}
		return found, len(list)
	}
	eventually(t, "the work", func() (bool, string) { n, _ := with("running"); return len(n) == 2, fmt.Sprint(a.machines()) })
	for _, i := range a.machines() {
		addr, err := netip.ParseAddr(i.Address)
		require.NoError(t, err)
		require.True(t, addr.IsPrivate(), "it has an address of its own")
	}
	a.PullThePlug()
	a = start(t, args...)
	eventually(t, "the work's end", func() (bool, string) { n, _ := with("complete"); return len(n) == 2, fmt.Sprint(a.machines()) })
	done, all := with("complete")
	require.Equal(t, 2, all, "nothing was lost")
	for _, x := range done {
		for name, s := range x.TaskStates {
			require.Zero(t, s.Restarts, name)
		}
	}
	a.noMachine(t)
	out, err := exec.Command("docker", "-H", endpoint, "ps", "-aq").CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, strings.TrimSpace(string(out)), "nothing of them is left")
}

// When no server answers any more, machines end by themselves.
func TestMachinesWithoutAServerEnd(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() { endMachines(t, data) })
	args := append([]string{"-server", "-rpc-port", freePort(t)}, config(t, data, fleetBlock("min = 2\n    terminate_at_dead = \"10s\""))...)
	a := start(t, args...)
	eventually(t, "the machines", func() (bool, string) {
		list := a.machines()
		return len(list) == 2 && list[0].State == fleet.InstanceActive && list[1].State == fleet.InstanceActive, fmt.Sprint(list)
	})
	require.NotEmpty(t, processesOf(filepath.Join(data, "fleet")))
	a.PullThePlug()
	eventually(t, "their end", func() (bool, string) {
		left := processesOf(filepath.Join(data, "fleet"))
		return len(left) == 0, fmt.Sprint(left)
	})
}

// A pool is tried before anything runs: each step is told, and nothing is left.
func TestFleetCheck(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() { endMachines(t, data) })
	args := append([]string{"fleet", "check", "std", "-json"}, config(t, data,
		strings.Replace(fleetBlock(""), "server {", "server {\n  enabled = true", 1))...)
	out, err := exec.Command(program.Binary, args...).CombinedOutput()
	require.NoError(t, err, string(out))
	var steps []fleet.CheckStep
	require.NoError(t, json.Unmarshal(out, &steps), string(out))
	var names []string
	for _, s := range steps {
		require.Empty(t, s.Error)
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"reach", "create", "list", "boot", "home", "tag", "destroy"}, names)
	require.Empty(t, processesOf(data))
}
