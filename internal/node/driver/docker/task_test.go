package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func (b *bench) logged(t *testing.T, spec driver.Spec) string {
	t.Helper()
	h := b.run(t, spec)
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	errText, _ := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stderr.0"))
	require.Zero(t, exit.Code, string(errText))
	out, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stdout.0"))
	require.NoError(t, err)
	return string(out)
}

func script2(text string, more map[string]any) map[string]any {
	all := map[string]any{"command": "/bin/sh", "args": []any{"-c", text}}
	for k, v := range more {
		all[k] = v
	}
	return all
}

func TestOptionsReachTheContainer(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.AllowVolumes, c.AllowHostNetwork = true, true })
	host := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(host, "f"), []byte("from the host\n"), 0o644)) // read by others
	spec := b.spec(
		t,
		script2(`hostname; cat /etc/hosts | grep -c ten; pwd; cat /data/f; touch /data/g 2>&1 || echo read-only; touch /x 2>&1 || echo read-only;
		touch /scratch/x && echo writable; touch /big/x && grep -c ' /big tmpfs' /proc/mounts; ulimit -n;
		echo $IMAGE $GREETING; cat own/f; grep options /etc/resolv.conf; grep CapBnd /proc/self/status; true`,
			map[string]any{
				"hostname": "myhost", "extra_hosts": []any{"ten:10.0.0.10"}, "work_dir": "/local", "volumes": []any{host + ":/data:ro"},
				"readonly_rootfs": true,
				"tmpfs":           []any{"/scratch:size=1m"},
				"mount":           []any{map[string]any{"type": "tmpfs", "target": "/big", "tmpfs_options": map[string]any{"size": 1 << 20}}},
				"ulimit":          map[string]any{"nofile": "300:300"}, "labels": []any{map[string]any{"mine": "1"}}, "cap_drop": []any{"all"},
				"network_mode": "host",
			}),
	)
	delete(spec.Config, "hostname")
	require.NoError(t, os.Mkdir(filepath.Join(spec.Dirs.Local, "own"), 0o755))                        // read by others
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dirs.Local, "own/f"), []byte("own\n"), 0o644)) // read by others
	out := b.logged(t, spec)
	for _, want := range []string{
		"1\n/local\nfrom the host\n", "read-only\n", "writable\n1\n", "\n300\n", "busybox hello from /local\n", "\nown\n",
		"CapBnd:\t0000000000000000\n",
	} {
		require.Contains(t, out, want)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, script2("id -u; id -g; id -G; pwd; echo $HOME", nil))
	spec.User = "jane"
	require.Contains(t, b.logged(t, spec), "1001\n1002\n1002 50\n/\n")
	h := b.warm(t, nil)
	require.Equal(t, "1000\n", drivertest.Sh(t, h, "id -u").Out)
	pool := b.spec(t, nil)
	pool.User, pool.Pool = "jane", true
	require.Equal(t, "1001 1002\n", drivertest.Sh(t, b.run(t, pool), "echo $(id -u) $(id -g)").Out)
	spec = b.spec(t, script2("true", nil))
	spec.User = "ghost"
	_, err := b.Start(t.Context(), spec)
	require.ErrorContains(t, err, `unknown user "ghost"`)
	var start *driver.StartError
	require.ErrorAs(t, err, &start)
	require.False(t, start.Recoverable)
}

// TestImageWithoutAShell: nothing is needed of the image.
func TestImageWithoutAShell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.run(t, b.spec(t, map[string]any{"image": bare}))
	r := drivertest.Do(t, h, execution.Spec{Argv: []string{"/true"}})
	require.Equal(t, execution.CauseExited, r.Receipt.Cause)
	require.Zero(t, r.Receipt.ExitCode)
	files, err := h.Files().List(t.Context(), execution.FileRequest{Path: "/"})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	require.NoError(t, h.Stop(t.Context(), "", 5*time.Second))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 143, exit.Code)
	inspect, err := b.docker.ImageInspect(t.Context(), bare)
	require.NoError(t, err)
	require.Equal(t, []string{"/sleep"}, inspect.Config.Entrypoint, "the image is as it was")
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for want, config := range map[string]map[string]any{
		`unknown key "comand"`: {"comand": "x"},
		"/no/such/program":     {"command": "/no/such/program"},
		"nosuchruntime":        {"command": "true", "runtime": "nosuchruntime"},
		"allow_networks":       {"command": "true", "network_mode": "nosuchnet"},
		"no port":              {"command": "true", "ports": []any{"http"}},
		"leads out":            {"command": "true", "volumes": []any{"local/link:/x"}},
		"no such file": {
			"command": "true", "mounts": []any{map[string]any{"type": "bind", "source": "local/nothing", "target": "/x"}},
		},
		"invalid reference format": {"command": "true", "image": "UPPER/Case"},
	} {
		spec := b.spec(t, config)
		require.NoError(t, os.Symlink("/etc", filepath.Join(spec.Dirs.Local, "link")))
		_, err := b.Start(t.Context(), spec)
		require.ErrorContains(t, err, want)
		var start *driver.StartError
		require.ErrorAs(t, err, &start)
		require.False(t, start.Recoverable, "%v", err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	u, err := h.Usage(t.Context())
	require.NoError(t, err)
	before := u.ResourceUsage.MemoryStats.Cache
	r := drivertest.Root(t, h, "head -c 30000000 /dev/zero > /big; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	require.Zero(t, r.Receipt.ExitCode, r.Err)
	u, err = h.Usage(t.Context())
	require.NoError(t, err)
	require.Greater(t, u.ResourceUsage.CpuStats.Percent, 1.0)
	require.Greater(t, u.ResourceUsage.MemoryStats.Cache, before+20_000_000)
	require.NoError(t, h.Destroy(t.Context()))
	_, err = h.Usage(t.Context())
	require.ErrorIs(t, err, driver.ErrGone)
}

// TestCapabilities are the task's and its executions', root's too: what drover-init needs for itself they do not get.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for want, config := range map[string]map[string]any{
		"0000000000000000": {"cap_drop": []any{"all"}}, "0000000000000081": {"cap_drop": []any{"ALL"}, "cap_add": []any{"chown", "CAP_SETUID"}},
		"00000000000405db": {"cap_drop": []any{"kill", "net_raw"}}, "00000000000405fb": {}, // as in a sandbox
	} {
		for _, runtime := range []string{"runc", "runsc"} {
			config["runtime"] = runtime
			h := b.warm(t, config)
			require.Equal(t, want+"\n", drivertest.Root(t, h, "awk '/CapEff/ { print $2 }' /proc/self/status").Out, "%v", config)
			require.NoError(t, h.Destroy(t.Context()))
		}
	}
}

// TestRightsOfATask: fewer than docker gives, and no more by programs of its image, unless the job says that these need it.
func TestRightsOfATask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const look = "grep -E 'CapBnd|NoNewPrivs' /proc/self/status"
	require.Equal(t, "CapBnd:\t00000000a00405fb\nNoNewPrivs:\t1\n", b.logged(t, b.spec(t, script2(look, nil))))
	loose := b.spec(t, script2(look, map[string]any{"security_opt": []any{"no-new-privileges=false"}}))
	require.Equal(t, "CapBnd:\t00000000a00405fb\nNoNewPrivs:\t0\n", b.logged(t, loose))
	given := newBench(t, func(c *Config) { c.AllowCaps = []string{"chown", "net_raw", "mknod"} })
	require.Contains(t, given.logged(t, given.spec(t, script2("grep CapBnd /proc/self/status", nil))), "0000000008002001")
}

// TestVolumesAreMade: a folder of the task that is not there is, as docker does it with the machine's; a link in its place
// leads nowhere else.
func TestVolumesAreMade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, map[string]any{"volumes": []any{"local/a/b:/new"}, "ulimit": map[string]any{"nofile": "2000:3000"}})
	spec.Pool = true
	h := b.run(t, spec)
	require.Equal(t, "2000 3000\n", drivertest.Sh(t, h, "echo $(ulimit -n) $(ulimit -Hn)").Out)
	require.Equal(t, "0\n", drivertest.Root(t, h, "echo x > /new/f; echo $?").Out)
	require.FileExists(t, filepath.Join(spec.Dirs.Local, "a", "b", "f"))

	bad := b.spec(t, map[string]any{"volumes": []any{"local/out/x:/new"}})
	require.NoError(t, os.Symlink("/tmp", filepath.Join(bad.Dirs.Local, "out")))
	_, err := b.Start(t.Context(), bad)
	require.Error(t, err)
	require.NoDirExists(t, "/tmp/x")
	require.NoError(t, h.Destroy(t.Context()))
}

// TestGroupsThatAJobAdds are beside those that the user has in the image, for the task and for executions in it.
func TestGroupsThatAJobAdds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, script2("id -u; id -g; id -G; exec sleep 600", map[string]any{"group_add": []any{"root", "123", "staff"}}))
	spec.User = "jane"
	h := b.run(t, spec)
	require.Equal(t, "1002 0 50 123\n", drivertest.Sh(t, h, "id -G").Out)
	require.NoError(t, h.Destroy(t.Context()))
	out, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stdout.0"))
	require.NoError(t, err)
	require.Equal(t, "1001\n1002\n1002 0 50 123\n", string(out))
	spec = b.spec(t, script2("true", map[string]any{"group_add": []any{"none"}}))
	_, err = b.Start(t.Context(), spec)
	require.ErrorContains(t, err, `group_add: the image has no group "none"`)
}

// TestVolumesByName are made by the driver that the task names, and kept.
func TestVolumesByName(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.AllowVolumes = true })
	name := "drover-test-" + filepath.Base(b.dir)
	t.Cleanup(func() {
		out, err := exec.Command("docker", "-H", endpoint, "volume", "rm", name).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	config := map[string]any{"volume_driver": "local", "volumes": []any{name + ":/data"}}
	require.Empty(t, b.logged(t, b.spec(t, script2("echo kept > /data/f", config))))
	require.Equal(t, "kept\n", b.logged(t, b.spec(t, script2("cat /data/f", config))))
	require.ErrorContains(t, b.Validate(&drover.Task{Config: map[string]any{
		"image": busybox, "volume_driver": "local", "volumes": []any{"local/x:/data"},
	}}), `volumes: "local/x" is not the name of a volume`)
}

// TestTerminalAndInput: a shell of a job with both lives on, as on Nomad, until the task is stopped.
func TestTerminalAndInput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, script2("[ -t 0 ] && [ -t 1 ] && echo terminal", map[string]any{"tty": true}))
	require.Equal(t, "terminal\r\n", b.logged(t, spec))
	spec = b.spec(t, map[string]any{"command": "/bin/sh", "tty": true, "interactive": true})
	h := b.run(t, spec)
	require.Equal(t, "1\n", drivertest.Sh(t, h, "ps | grep -c '[/]bin/sh$'").Out)
	require.NoError(t, h.Stop(t.Context(), "SIGKILL", time.Minute))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 137, exit.Code)
	require.Equal(t, "ended\n", b.logged(t, b.spec(t, script2("cat; echo ended", nil))), "without them the input is at its end")
}
