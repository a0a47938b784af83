package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/image"
)

func TestReadOnlyRootAndMounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, map[string]any{
		"readonly_rootfs": true, "command": "/bin/sleep", "args": []any{"100"}, "hostname": "box",
		"mounts": []any{map[string]any{"source": "local/data", "target": "/data", "readonly": true}},
	})
	require.NoError(t, os.MkdirAll(filepath.Join(spec.Dirs.Local, "data"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dirs.Local, "data/f"), []byte("data"), 0o600))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("file"), 0o644))
	spec.Mounts = []driver.Mount{{Source: filepath.Dir(file), Target: "/vol/a"}, {Source: file, Target: "/tmp/file", ReadOnly: true}}
	h := b.run(t, spec)
	r := drivertest.Root(
		t,
		h,
		"cat /data/f /vol/a/file /tmp/file; hostname; touch /x; touch /data/x; echo y > /tmp/file; touch /tmp/ok /vol/a/ok && ls -ln /data/f",
	)
	require.True(t, strings.HasPrefix(r.Out, "datafilefilebox\n"), r.Out)
	require.Equal(t, 3, strings.Count(r.Err, "Read-only file system"), r.Err)
	require.Contains(t, r.Out, " 0 0 4 ", "the machine's root is the sandbox's: %s", r.Out)
	require.FileExists(t, filepath.Join(filepath.Dir(file), "ok"))
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.AllowHostNetwork = true })
	none, host := b.warm(t, nil), b.warm(t, map[string]any{"network_mode": "host"})
	require.Equal(t, "lo\n", drivertest.Sh(t, none, "ls /proc/sys/net/ipv4/conf | grep -v -e all -e default").Out)
	serve := "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); " +
		"c = socket.create_connection(s.getsockname()); print(\"ok\")'"
	require.Equal(t, "ok\n", drivertest.Sh(t, none, serve).Out)
	mine, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.Equal(t, mine+"\n", drivertest.Root(t, host, "readlink /proc/self/ns/net").Out)
	resolver, err := os.ReadFile("/etc/resolv.conf")
	require.NoError(t, err)
	require.Equal(t, string(resolver), drivertest.Sh(t, host, "cat /etc/resolv.conf").Out)
	require.NotEqual(t, mine+"\n", drivertest.Root(t, none, "readlink /proc/self/ns/net").Out)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	_, err := h.Usage(t.Context())
	require.NoError(t, err)
	drivertest.Sh(t, h, "python3 -c 'b = bytearray(50 << 20); sum(range(3000000))'")
	u, err := h.Usage(t.Context())
	require.NoError(t, err)
	require.Greater(t, u.ResourceUsage.MemoryStats.MaxUsage, uint64(50<<20))
	require.Less(t, u.ResourceUsage.MemoryStats.RSS, uint64(30<<20))
	require.Positive(t, u.ResourceUsage.CpuStats.Percent)
	require.NotZero(t, u.Timestamp)
	require.NoError(t, h.Destroy(t.Context()))
	_, err = h.Usage(t.Context())
	require.ErrorIs(t, err, driver.ErrGone)
}

func TestPseudoTerminal(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	r := drivertest.Do(t, h, execution.Spec{
		Argv: []string{"/bin/sh", "-c", "tty; stty size; python3 -c 'import os; m, s = os.openpty(); print(os.ttyname(s))'"}, TTY: true,
		Size: execution.WindowSize{Rows: 33, Cols: 77},
	})
	require.Contains(t, r.Out, "33 77", r.Out)
	require.Contains(t, r.Out, "/dev/pts/", r.Out)
}

// TestImage runs an image with an entry point, a user and deletions, made of the machine's own shell.
func TestImage(t *testing.T) {
	t.Parallel()
	testImage(t, newBench(t))
}

// TestOuterRoot: as on kernels before 6.6.
func TestOuterRoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.outer = true
	testImage(t, b)
	h := b.warm(t, map[string]any{"disk_mb": 8})
	r := drivertest.Root(
		t,
		h,
		"head -c 12m /dev/zero > /etc/fill; rm /etc/fill; mkdir /etc/made && "+
			"mv /etc/made /etc/moved && rmdir /etc/moved && id -u && stat -c %u / /tmp /etc",
	)
	require.Equal(t, "0\n0\n0\n0\n", r.Out, r.Err)
	require.Contains(t, r.Err, "No space left on device")
	for what, script := range map[string]string{
		"a device": "mknod /tmp/null c 1 3", "trusted marks": `python3 -c 'import os; os.setxattr("/tmp", "trusted.overlay.opaque", b"y")'`,
		"the machine's programs": "touch /usr/x", "mount": "mount -o remount,size=1g /tmp",
	} {
		refused(t, h, what, script)
	}
	require.Contains(t, drivertest.Sh(t, h, "id; echo x > /tmp/x && cat /tmp/x").Out, "uid=1000(user)")
	require.NoError(t, h.Destroy(t.Context()))
}

func testImage(t *testing.T, b *bench) {
	t.Helper()
	spec := b.spec(
		t,
		map[string]any{
			"image": shellImage(t),
			"args": []any{
				"-c",
				"echo $0 $FROM; pwd; id -u; cat /etc/lower /gone; ls -ln /etc/lower; rm /etc/lower; echo y > /etc/new; cat /etc/new; ls /etc",
			},
		},
	)
	spec.User = "joe"
	h := b.run(t, spec)
	_, err := h.Wait(t.Context())
	require.NoError(t, err)
	out, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stdout.0"))
	require.NoError(t, err)
	require.Contains(t, string(out), "image\n/srv\n7\nlower\n", "%s", out)
	errs, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stderr.0"))
	require.NoError(t, err)
	require.Contains(t, string(errs), "/gone", "deleted by the second layer")
	require.Contains(t, string(errs), "Permission denied", "joe may not write")
	r := drivertest.Root(t, h, "rm /etc/lower && echo y > /etc/new && ls /etc && rm -r /etc/sub && mkdir /etc/sub && ls -a /etc/sub")
	require.Zero(t, r.Receipt.ExitCode, "the root may change the image: %+v", r)
}

// shellImage writes an OCI layout with a shell.
func shellImage(t *testing.T) string {
	t.Helper()
	lower, upper := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	copied := map[string]bool{}
	for _, p := range []string{"/bin/sh", "/bin/ls", "/bin/cat", "/bin/rm", "/bin/mkdir", "/usr/bin/id", "/usr/bin/sleep"} {
		for _, f := range append(libraries(t, p), p) {
			if !copied[f] {
				data, err := os.ReadFile(f)
				require.NoError(t, err)
				write(lower, f, string(data))
				copied[f] = true
			}
		}
	}
	write(lower, "etc/passwd", "root:x:0:0::/:/bin/sh\njoe:x:7:8::/srv:/bin/sh\n")
	write(lower, "etc/lower", "lower\n")
	write(lower, "etc/sub/file", "x")
	write(lower, "srv/x", "x")
	write(lower, "gone", "gone")
	write(upper, ".wh.gone", "")
	img := mutate.MediaType(empty.Image, "application/vnd.oci.image.manifest.v1+json")
	for _, dir := range []string{lower, upper} {
		l, err := tarball.LayerFromFile(tarOf(t, dir))
		require.NoError(t, err)
		img, err = mutate.AppendLayers(img, l)
		require.NoError(t, err)
	}
	cfg, err := img.ConfigFile()
	require.NoError(t, err)
	cfg = cfg.DeepCopy()
	cfg.Config.Entrypoint, cfg.Config.Cmd, cfg.Config.WorkingDir = []string{"/bin/sh"}, []string{"-c", "sleep 100"}, "/srv"
	cfg.Config.Env = []string{"FROM=image"}
	img, err = mutate.ConfigFile(img, cfg)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "layout")
	path, err := layout.Write(out, empty.Index)
	require.NoError(t, err)
	require.NoError(t, path.AppendImage(img))
	return out
}

func TestControlGroupsAreOutOfSight(t *testing.T) {
	t.Parallel()
	sealedFromGroups(t, newBench(t))
}

// sealedFromGroups: neither a task nor an execution sees more of the tree than its own part, or has what making another
// namespace needs.
func sealedFromGroups(t *testing.T, b *bench) {
	t.Helper()
	const look = "cut -d: -f3 /proc/self/cgroup | sort -u; grep CapBnd /proc/self/status"
	spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", look + "; sleep 100"}})
	caps, err := b.capsOf(&spec, taskConfig{})
	require.NoError(t, err)
	want := fmt.Sprintf("/\nCapBnd:\t%016x\n", caps)
	h := b.run(t, spec)
	for what, r := range map[string]drivertest.Result{"execution": drivertest.Sh(t, h, look), "root": drivertest.Root(t, h, look)} {
		require.Equal(t, want, r.Out, what)
	}
	var log []byte
	require.Eventually(t, func() bool {
		log, _ = os.ReadFile(filepath.Join(spec.Log.Dir, "t.stdout.0"))
		return strings.Contains(string(log), "CapBnd")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, want, string(log))
	defer func() { require.NoError(t, h.Destroy(t.Context())) }()
	for what, script := range map[string]string{
		"a namespace": "unshare -C true", "init's namespace": "nsenter -t 1 -C true", "to see init's": "readlink /proc/1/ns/cgroup",
		"groups": "ls /sys/fs/cgroup/*", "to mount them": "mount -t cgroup2 x /mnt || mount -t cgroup -o memory x /mnt",
	} {
		refused(t, h, what, script)
	}
}

// TestV2 runs on the empty v2 tree of a hybrid machine: placement, killing and removal are v2's; there are no
// controllers.
func TestV2(t *testing.T) {
	t.Parallel()
	const root = "/sys/fs/cgroup/unified"
	if cgroup.Probe("/sys/fs/cgroup").Version == cgroup.V2 {
		return // then all the other tests are on v2
	}
	groups, err := cgroup.New(cgroup.Config{Root: root, Parent: drivertest.GroupParent(t)})
	require.NoError(t, err)
	b := newBench(t, func(c *Config) { c.Cgroups = groups })
	h := b.warm(t, nil)
	r := drivertest.Sh(
		t,
		h,
		"grep ^0: /proc/self/cgroup; python3 -c 'import threading; t = threading.Thread(target=print, args=(1,)); t.start()'",
	)
	require.Equal(t, "0::/\n1\n", r.Out, "%+v", r)
	sealedFromGroups(t, b)
	require.NoError(t, h.Destroy(t.Context()))
	left, err := groups.List()
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, groups.Close(clock.Wall{}))
}

// TestWithoutCgroups: only what rlimits can do.
func TestWithoutCgroups(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Cgroups = nil })
	h := b.warm(t, map[string]any{"pids_limit": 40})
	require.Equal(t, "x\n", drivertest.Sh(t, h, "echo x").Out)
	require.NotZero(t, drivertest.Sh(t, h, "python3 -c 'bytearray(1 << 30)'").Receipt.ExitCode)
	r := drivertest.Sh(t, h, "i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); done; echo all")
	require.NotContains(t, r.Out, "all")
	info := b.Fingerprint(t.Context())
	require.True(t, info.Healthy)
	require.Contains(t, info.Attributes["driver.sandbox.weaker"], "no cgroups")
	_, err := h.Usage(t.Context())
	require.ErrorIs(t, err, driver.ErrNotSupported)
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	info := b.Fingerprint(t.Context())
	require.True(t, info.Detected)
	require.True(t, info.Healthy, info.HealthDescription)
	require.Equal(t, "1", info.Attributes["driver.sandbox"])
	require.NotEmpty(t, info.Attributes["driver.sandbox.cgroups"])
	broken := New(Config{Binary: "/no/such", Clock: b.cfg.Clock, Images: image.NewStore(image.Options{})})
	info = broken.Fingerprint(t.Context())
	require.False(t, info.Detected)
	require.Contains(t, info.HealthDescription, "drover-init is missing")
}
