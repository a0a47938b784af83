package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

const containerEnv = "DROVER_TEST_CONTAINER"

// TestInAContainer runs TestInAContainerInside in a group of its own that is the root of what it sees, as in a container
// that may write to its control groups.
func TestInAContainer(t *testing.T) {
	t.Parallel()
	if os.Getenv(containerEnv) != "" {
		return
	}
	require.Zero(t, os.Geteuid(), "this test makes a namespace: run it as root")
	root := realV2(t)
	box := filepath.Join(root, drivertest.GroupParent(t))
	require.NoError(t, os.Mkdir(box, 0o755))
	t.Cleanup(func() {
		require.NoError(t, os.Remove(filepath.Join(box, vacatedLeaf)))
		require.NoError(t, os.Remove(box), "groups left behind")
	})
	group, err := os.Open(box)
	require.NoError(t, err)
	defer group.Close()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestInAContainerInside$", "-test.v")
	cmd.Env = append(os.Environ(), containerEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestInAContainerInside(t *testing.T) { // alone in its process
	root := os.Getenv(containerEnv)
	if root == "" {
		return
	}
	runtime.LockOSThread() // it ends with the test
	require.NoError(t, unix.Unshare(unix.CLONE_NEWCGROUP|unix.CLONE_NEWNS))
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	require.NoError(t, unix.Mount("none", root, "cgroup2", 0, ""))
	require.Equal(t, "/", ownGroup())
	other := exec.CommandContext(t.Context(), "sleep", "1000") // in the container's group too
	require.NoError(t, other.Start())

	m, err := New(Config{Root: root})
	require.NoError(t, err)
	require.Equal(t, "/"+vacatedLeaf, ownGroup())
	require.Empty(t, m.info.lacks)
	require.Subset(t, strings.Fields(read(t, filepath.Join(root, "drover"), "cgroup.subtree_control")), m.info.Controllers)
	g, err := m.Create("a.t", Limits{MemoryMax: 64 << 20, Pids: 10}, 0)
	require.NoError(t, err)
	sleep := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, sleep.Start())
	add(t, g, sleep.Process.Pid)
	second, err := New(Config{Root: root})
	require.NoError(t, err, "a second agent finds it done")
	require.NoError(t, second.Close(clock.Wall{}))
	require.NoError(t, g.Kill())
	require.Error(t, sleep.Wait())
	require.NoError(t, other.Process.Signal(syscall.Signal(0)))
	require.NoError(t, other.Process.Kill())
	require.Error(t, other.Wait())
	require.NoError(t, g.Remove(t.Context(), clock.Wall{}))
	require.NoError(t, m.Close(clock.Wall{}))
}
