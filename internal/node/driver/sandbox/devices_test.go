package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// nodesOf makes device files that behave as /dev/zero, only root's as render nodes are.
func nodesOf(t *testing.T, names ...string) (out []driver.DeviceNode) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, filepath.Base(name))
		require.NoError(t, unix.Mknod(path, unix.S_IFCHR|0o660, int(unix.Mkdev(1, 5))))
		out = append(out, driver.DeviceNode{Source: path, Target: "/dev/" + name})
	}
	return out
}

// A sandbox has the devices that its task was given, for all of its users, and no others: those of another task it can neither see
// nor make, and the libraries are read-only.
func TestDevicesOfATask(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes device files")
	}
	b := newBench(t)
	nodes := nodesOf(t, "nvidia0", "dri/renderD128", "nvidia1")
	library := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(library, []byte("library"), 0o644))
	spec := b.spec(t, map[string]any{"command": "/bin/sleep", "args": []any{"100"}})
	given := driver.Devices{
		Nodes: nodes[:2], LibraryPath: "/usr/local/nvidia/lib64",
		Libraries: []driver.Mount{{Source: library, Target: "/usr/local/nvidia/lib64/libcuda.so.1", ReadOnly: true}},
	}
	spec.Devices = given
	h := b.run(t, spec)
	r := drivertest.Sh(t, h, "head -c2 /dev/nvidia0 | wc -c; head -c3 /dev/dri/renderD128 | wc -c; echo x > /dev/null")
	require.Equal(t, "2\n3\n", r.Out, r.Err)
	for what, script := range map[string]string{
		"another task's device": "ls /dev/nvidia1",
		"making it":             "mknod /tmp/nvidia1 c 1 5 && head -c1 /tmp/nvidia1 | grep -q .",
		"making it in /dev":     "mknod /dev/nvidia1 c 1 5",
		"removing its own":      "rm /dev/nvidia0",
	} {
		refused(t, h, what, script)
	}
	spec = b.spec(t, map[string]any{"image": shellImage(t)})
	spec.Devices = given
	own := b.run(t, spec)
	require.Equal(t, "/dev/dri/renderD128\nlibrary", drivertest.Sh(t, own, "ls /dev/dri/*; cat $LD_LIBRARY_PATH/libcuda.so.1").Out)
	refused(t, own, "changing a library", "echo x > /usr/local/nvidia/lib64/libcuda.so.1")
	other := b.warm(t, nil)
	refused(t, other, "a device of a sandbox without any", "ls /dev/nvidia0 || ls /dev/dri")

	for target, source := range map[string]string{
		"/dev/nvidia7": library, "/dev/nvidia8": "/nonexistent", "/etc/nvidia": nodes[0].Source, "/dev/../etc/x": nodes[0].Source,
	} {
		spec := b.spec(t, map[string]any{"command": "/bin/sleep", "args": []any{"100"}})
		spec.Devices.Nodes = []driver.DeviceNode{{Source: source, Target: target}}
		_, err := b.Start(t.Context(), spec)
		require.ErrorContains(t, err, "device "+target, source)
	}
}

// Where devices lie on the disk, as the kernel clones no mount in memory, users of the machine do not come to them: they are everybody's.
func TestGivenDevicesAreClosedToOtherUsers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes device files")
	}
	dir := t.TempDir()
	path, err := givenFolder(dir, nodesOf(t, "dri/renderD128"))
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(path, "dri/renderD128"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o666), info.Mode().Perm())
	require.NotEqual(t, dir, filepath.Dir(path))
	info, err = os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
