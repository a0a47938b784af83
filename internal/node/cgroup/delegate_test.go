package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func TestDelegatedTree(t *testing.T) {
	t.Parallel()
	root := fakeV2(t)
	own := filepath.Join(root, "user.slice/app.scope")
	fakeGroup(t, own)
	i := Probe(root)
	i.Writable = false // as for a user
	given := i.delegated(root, "/user.slice/app.scope")
	require.True(t, given.Writable)
	require.Equal(t, own, given.mounts[""])
	require.Equal(t, []string{"cpuset", "cpu", "memory", "pids"}, given.Controllers)
	require.Equal(t, own, i.delegated(root, "/user.slice/app.scope/agent").mounts[""], "the agent went into its leaf before")
	require.False(t, i.delegated(root, "/").Writable)
	require.False(t, i.delegated(root, "").Writable)
	other := i.delegated(root, "/user.slice/other.scope")
	require.False(t, other.Writable)
	require.Contains(t, other.Reason, "Delegate=yes")
	fakeGroup(t, filepath.Join(own, "agent"))
	require.NoError(t, given.settle())
	require.Equal(t, strconv.Itoa(os.Getpid()), read(t, filepath.Join(own, "agent"), "cgroup.procs"))
}

// TestDelegatedManager: a user's service manager has a tree of which the agent's service is a part.
func TestDelegatedManager(t *testing.T) {
	t.Parallel()
	root := fakeV2(t)
	manager := filepath.Join(root, "user.slice/user-1.slice/user@1.service")
	for _, d := range []string{"", "app.slice", "app.slice/drover.service"} {
		fakeGroup(t, filepath.Join(manager, d))
	}
	i := Probe(root)
	i.Writable = false
	given := i.delegated(root, "/user.slice/user-1.slice/user@1.service/app.slice/drover.service")
	require.True(t, given.Writable)
	require.Equal(t, manager, given.mounts[""])
	require.NoError(t, given.settle())
	require.NoDirExists(t, filepath.Join(manager, agentLeaf), "the agent stays where it is")
}

// realV2 returns where the kernel's v2 tree is.
func realV2(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} { // beside v1 it has no controllers, but all else
		if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
			return root
		}
	}
	require.NotEqual(t, "true", os.Getenv("CI"), "CI has a v2 tree")
	t.Skip("there is no v2 tree")
	return ""
}

const delegatedEnv = "DROVER_TEST_DELEGATED"

// TestDelegatedForReal runs TestDelegatedInside as a user who was given a group of the kernel's v2 tree.
func TestDelegatedForReal(t *testing.T) {
	t.Parallel()
	if os.Getenv(delegatedEnv) != "" {
		return
	}
	require.Zero(t, os.Geteuid(), "this test gives a group away: run it as root")
	root := realV2(t)
	given := filepath.Join(root, drivertest.GroupParent(t))
	require.NoError(t, os.Mkdir(given, 0o755))
	t.Cleanup(func() {
		for _, d := range []string{"drover/supervisors", "drover", agentLeaf, ""} {
			_ = os.Remove(filepath.Join(given, d))
		}
		require.NoDirExists(t, given)
	})
	for _, f := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		require.NoError(t, os.Chown(filepath.Join(given, f), 12345, 12345))
	}
	group, err := os.Open(given)
	require.NoError(t, err)
	defer group.Close()
	drivertest.AsUser(t, "TestDelegatedInside", delegatedEnv+"="+root, int(group.Fd()))
}

func TestDelegatedInside(t *testing.T) { // alone in its process
	root := os.Getenv(delegatedEnv)
	if root == "" {
		return
	}
	m, err := New(Config{Root: root})
	require.NoError(t, err)
	require.Equal(t, V2, m.Info().Version)
	require.True(t, strings.HasSuffix(ownGroup(), "/"+agentLeaf), ownGroup())
	g, err := m.Create("a.t", Limits{MemoryMax: 64 << 20, Pids: 10}, 0)
	require.NoError(t, err)
	sleep := exec.Command("sleep", "1000")
	require.NoError(t, sleep.Start())
	add(t, g, sleep.Process.Pid)
	pids, err := g.Procs()
	require.NoError(t, err)
	require.Equal(t, []int{sleep.Process.Pid}, pids)
	again, err := New(Config{Root: root})
	require.NoError(t, err, "a second time, from the leaf")
	_, err = again.Open("a.t")
	require.NoError(t, err)
	require.NoError(t, g.Kill())
	require.Error(t, sleep.Wait())
	require.NoError(t, g.Remove(t.Context(), clock.Wall{}))
	require.NoError(t, m.Close(clock.Wall{}))
}
