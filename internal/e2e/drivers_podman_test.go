package e2e

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/dockerdtest"
)

// startPodman starts a podman that has the tests' images, for as long as the test takes.
func startPodman(t *testing.T) *dockerdtest.Podman {
	t.Helper()
	if dockerdtest.Off() {
		t.Skip("DROVER_TEST_DOCKER=off")
	}
	daemon, err := dockerdtest.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, daemon.Stop()) })
	podman, err := dockerdtest.StartPodman(daemon.Endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, podman.Stop()) })
	return podman
}

// TestNomadsPodmanDriver: a job of Nomad's client with the keys of Nomad's podman driver. Its container is found again after kill -9 of
// the agent, also while podman is away, and started once; a task of it and one of another driver share their group's network.
func TestNomadsPodmanDriver(t *testing.T) {
	podman := startPodman(t)
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, `plugin "nomad-driver-podman" {
  config {
    socket_path = "`+podman.Endpoint+`"
  }
}
plugin "docker" {
  config {
    enabled = false
  }
}`)...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	c := a.nomad()
	j := driverJob("pods", "service", "podman", map[string]any{
		"image": "docker://drover-test/busybox:1", "entrypoint": "/bin/sh", "working_dir": "/local",
		"args": []string{"-c", "echo started in $(pwd) >> once; cat once; exec httpd -f -p 8080 -h /local"},
	})
	j.TaskGroups[0].Networks = []*api.NetworkResource{{Mode: "bridge"}}
	j.TaskGroups[0].Tasks = append(j.TaskGroups[0].Tasks, driverJob("x", "service", "raw_exec", map[string]any{
		"command": "/bin/busybox", "args": []string{"sh", "-c", "until busybox wget -qO- http://127.0.0.1:8080/once; do :; done; sleep 600"},
	}).TaskGroups[0].Tasks[0])
	j.TaskGroups[0].Tasks[0].Name = "web"
	_, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
	pods := allocation(t, c, "pods", "running")
	eventually(t, "what the other task of the group sees", func() (bool, string) {
		out := logs(t, c, pods.ID, "stdout")
		return out == "started in /local\n", out
	})
	names, err := podman.Docker("ps", "--format", "{{.Names}}")
	require.NoError(t, err)
	require.Contains(t, names, pods.ID)
	a.PullThePlug()
	require.NoError(t, podman.Halt())
	a = start(t, args...)
	c = a.nomad()
	require.Equal(t, pods.ID, allocation(t, c, "pods", "running").ID)
	require.NoError(t, podman.Run())
	again, err := podman.Docker("ps", "--format", "{{.Names}}")
	require.NoError(t, err)
	require.Equal(t, names, again, "one container, and the same")
	_, _, err = c.Jobs().Deregister("pods", false, nil)
	require.NoError(t, err)
	eventually(t, "the container's end", func() (bool, string) {
		out, err := podman.Docker("ps", "-a", "--format", "{{.Names}}")
		return err == nil && strings.TrimSpace(out) == "", out
	})
	checked, _, err := c.Jobs().Validate(driverJob("host", "batch", "podman", map[string]any{
		"image": "redis", "volumes": []string{"/etc:/x"},
	}), nil)
	require.NoError(t, err)
	require.Contains(t, checked.Error, `volumes: /etc:/x is outside of the container`)
	require.Contains(t, checked.Error, `plugin "podman" { config { volumes { enabled = true } } }`)
}

// TestPodmansEnvironment: its runners are containers of podman's, with and without a network. What one wrote is there after kill -9 of
// the agent, and its container goes with it.
func TestPodmansEnvironment(t *testing.T) {
	podman := startPodman(t)
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, `plugin "podman" {
  config {
    socket_path = "`+podman.Endpoint+`"
  }
}`)...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	run := func(runner, script string) string {
		t.Helper()
		x, err := a.native().StartExecution(t.Context(), runner, execution.Request{Command: script})
		if err == nil {
			_, err = a.native().WaitExecution(t.Context(), x.ID)
		}
		if err != nil {
			require.NoError(t, err, history(t, a.nomad()))
		}
		out, err := a.native().Output(t.Context(), x.ID, "stdout", 0)
		require.NoError(t, err)
		text, err := io.ReadAll(out)
		require.NoError(t, err)
		require.NoError(t, out.Close())
		return string(text)
	}
	_, _, err := a.native().PutEnvironment(t.Context(), execution.Environment{ID: "h", Image: "host", Driver: "podman"})
	require.ErrorContains(t, err, `"host" is not an image that podman has`)
	var claimed []string
	for id, network := range map[string]bool{"alone": false, "wired": true} {
		_, _, err = a.native().PutEnvironment(t.Context(), execution.Environment{
			ID: id, Image: "drover-test/busybox:1", Driver: "podman", PoolSize: 1, MemoryMB: 64, Network: network,
		})
		require.NoError(t, err)
		r, err := a.native().Claim(t.Context(), execution.ClaimRequest{Environment: id, Wait: time.Minute})
		require.NoError(t, err)
		links := map[bool]string{false: "lo", true: "eth0 lo"}[network]
		require.Equal(t, "1000 "+links+"\n", run(r.ID, "echo kept > /tmp/f; echo $(id -u) $(ls /sys/class/net)"))
		claimed = append(claimed, r.ID)
	}
	a.PullThePlug()
	a = start(t, args...)
	for _, id := range claimed {
		eventually(t, "the runner", func() (bool, string) {
			r, err := a.native().Runner(t.Context(), id)
			return err == nil, fmt.Sprint(r, err)
		})
		require.Equal(t, "kept\n", run(id, "cat /tmp/f"))
		require.NoError(t, a.native().Release(t.Context(), id))
	}
	for _, id := range []string{"alone", "wired"} {
		require.NoError(t, a.native().DeleteEnvironment(t.Context(), id))
	}
	eventually(t, "the containers' end", func() (bool, string) {
		out, err := podman.Docker("ps", "-a", "--format", "{{.Names}}")
		return err == nil && strings.TrimSpace(out) == "", out
	})
}

// history is what became of all allocations: for a failure that does not say.
func history(t *testing.T, c *api.Client) string {
	t.Helper()
	list, _, err := c.Allocations().List(nil)
	require.NoError(t, err)
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "\n%s of %s: %s (%s), %s (%s)", a.ID, a.JobID, a.DesiredStatus, a.DesiredDescription, a.ClientStatus, a.ClientDescription)
		for _, s := range a.TaskStates {
			for _, e := range s.Events {
				fmt.Fprintf(&b, "\n    %s %s: %s", time.Unix(0, e.Time).Format(time.StampMilli), e.Type, e.DisplayMessage)
			}
		}
	}
	return b.String()
}
