package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/supervisor"
)

const rootlessEnv = "DROVER_TEST_ROOTLESS"

// TestRootless runs TestRootlessInside in this same program as an unprivileged user.
func TestRootless(t *testing.T) {
	t.Parallel()
	if os.Getenv(rootlessEnv) == "" {
		drivertest.AsUser(t, "TestRootlessInside", rootlessEnv+"=none", -1)
	}
}

// TestRootlessInAGivenGroup does it in a part of the kernel's v2 tree that was given to the user. Beside v1 that has no
// controllers: limits are kept as without, but what a task started is known, and killed, by its group.
func TestRootlessInAGivenGroup(t *testing.T) {
	t.Parallel()
	if os.Getenv(rootlessEnv) != "" {
		return
	}
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		root += "/unified"
	}
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		t.Log("there is no v2 tree: not tried")
		return
	}
	given := filepath.Join(root, drivertest.GroupParent(t))
	require.NoError(t, os.Mkdir(given, 0o755))
	t.Cleanup(func() {
		for _, d := range []string{"drover/supervisors", "drover", "agent", ""} {
			_ = os.Remove(filepath.Join(given, d))
		}
		require.NoDirExists(t, given, "groups left behind")
	})
	for _, f := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		require.NoError(t, os.Chown(filepath.Join(given, f), 12345, 12345))
	}
	group, err := os.Open(given)
	require.NoError(t, err)
	defer group.Close()
	drivertest.AsUser(t, "TestRootlessInside", rootlessEnv+"="+root, int(group.Fd()))
}

func TestRootlessInside(t *testing.T) { // alone in its process
	if os.Getenv(rootlessEnv) == "" {
		return
	}
	root := os.Getenv(rootlessEnv)
	groups, err := cgroup.New(cgroup.Config{Root: root})
	if root == "none" {
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		groups = nil
	} else {
		require.NoError(t, err)
	}
	b := newBench(t, func(c *Config) { c.Cgroups = groups })
	info := b.Fingerprint(t.Context())
	require.True(t, info.Healthy, info.HealthDescription)
	require.Contains(t, info.Attributes["driver.sandbox.weaker"], "not root")
	require.Equal(t, "true", info.Attributes["driver.sandbox.rootless"])
	require.Equal(t, "false", info.Attributes["driver.sandbox.network.host"])
	require.Contains(t, info.Attributes["driver.sandbox.network.host.missing"], "needs allow_host_network on this node")
	h := b.warm(t, map[string]any{"pids_limit": 60})
	r := drivertest.Sh(t, h, "id -u; python3 -c 'print(6 * 7)'; echo x > /tmp/x; echo y > /dev/null; ls -d /work /home/user 2>&1; hostname")
	require.Contains(t, r.Out, "0\n42\n", "%+v", r)
	require.NotContains(t, r.Out, "\n/work\n")
	for what, script := range map[string]string{
		"mount": "mount -t tmpfs x /mnt", "user namespace": "unshare -U true", "write /usr": "touch /usr/x",
		"kill init": "kill -9 1; sleep 0.1; exit 1", "write sysctl": "echo 1 > /proc/sys/user/max_user_namespaces",
	} {
		refused(t, h, what, script)
	}
	spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", "echo made > /local/made; exit 6"}})
	task := b.run(t, spec)
	exit, err := task.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6, exit.Code)
	made, err := os.ReadFile(filepath.Join(spec.Dirs.Local, "made"))
	require.NoError(t, err)
	require.Equal(t, "made\n", string(made))
	log, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stderr.0"))
	require.NoError(t, err)
	require.Empty(t, string(log))
	pid := h.box.pid
	require.NoError(t, h.Destroy(t.Context()))
	require.Zero(t, hostProcesses(t, pid))
	t.Run("conformance", func(t *testing.T) {
		drivertest.Run(t, drivertest.Harness{
			New: func(t *testing.T) driver.Driver {
				t.Helper()
				cfg := b.cfg
				cfg.Dir = filepath.Join(cfg.Dir, t.Name())
				return New(cfg)
			},
			Config: func(p drivertest.Program) map[string]any {
				return map[string]any{"command": "/bin/sh", "args": []any{"-c", p.ShellScript()}}
			},
			Missing: map[drivertest.Ability]string{
				drivertest.Users:  "one user is all that a user may map",
				drivertest.Groups: "there is no memory controller",
			},
		})
	})
	_, err = supervisor.Connect(t.Context(), supervisor.SocketPath(h.box.stateDir), supervisor.Options{})
	require.Error(t, err)
}
