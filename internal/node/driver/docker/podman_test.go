package docker

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/dockerdtest"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func TestWhatPodmanTasksMayNot(t *testing.T) {
	t.Parallel()
	for says, config := range map[string]map[string]any{
		`image: "oci-archive:/etc/x" is not an image of a registry`: {"image": "oci-archive:/etc/x"},
		`image: "docker://dir:/etc" is not an image of`:             {"image": "docker://docker://dir:/etc"},
		`labels: "PODMAN_SYSTEMD_UNIT" is podman's own`:             {"labels": []any{map[string]any{"PODMAN_SYSTEMD_UNIT": "sshd.service"}}},
		`labels: "io.containers.autoupdate" is podman's own`:        {"labels": map[string]any{"io.containers.autoupdate": "registry"}},
		`userns: is not possible`:                                   {"userns": "keep-id"},
		`apparmor_profile, selinux_opts: apparmor=unconfined is outside of the container (what holds a container), for which this node ` +
			`gives no leave: plugin "podman" { config { allow_privileged = true } }`: {"apparmor_profile": "unconfined"},
		`selinux_opts: label=disable is outside`:        {"selinux_opts": []any{"disable"}},
		`devices: /dev/sda is outside of the container`: {"devices": []any{"/dev/sda:/dev/x:rwm"}},
		`privileged: true is outside`:                   {"privileged": true},
		`network_mode: ns:/proc/1/ns/net is outside`:    {"network_mode": "ns:/proc/1/ns/net"},
		`network_mode: container:other is outside`:      {"network_mode": "container:other"},
		`network_mode: host is outside`:                 {"network_mode": "host"},
		`volumes: /etc:/x is outside`:                   {"volumes": []any{"/etc:/x"}},
		`cap_add: sys_admin is outside`:                 {"cap_add": []any{"SYS_ADMIN"}},
		`sysctl: kernel.core_pattern is outside`:        {"sysctl": map[string]any{"kernel.core_pattern": "x"}},
		`auth: tls_verify: is not a job's to say`:       {"auth": map[string]any{"tls_verify": false}},
		`socket: "other" is not there`:                  {"socket": "other"},
		`init_path: is not possible`:                    {"init_path": "/bin/sh"},
		`memory_swap: is not possible`:                  {"memory_swap": "1g"},
		`memory_reservation: "much" is no size`:         {"memory_reservation": "much"},
		`shm_size: "9999999999g" is no size`:            {"shm_size": "9999999999g"},
		`port_map: "0" of "x" is no port`:               {"port_map": []any{map[string]any{"x": 0}}},
		`working_dir: "x" is not an absolute path`:      {"working_dir": "x"},
		`logging: driver: journald is not possible`:     {"logging": map[string]any{"driver": "journald"}},
		`unknown key "work_dir"; known are`:             {"work_dir": "/x"},
	} {
		if config["image"] == nil {
			config["image"] = "docker://redis"
		}
		_, err := (&Driver{cfg: Config{Podman: true}}).parse(config, &driver.Spec{})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), says)
		require.ErrorContains(t, err, says)
	}
	c, err := (&Driver{cfg: Config{Podman: true}}).parse(map[string]any{
		"image": "docker://redis", "entrypoint": "/x", "memory_reservation": "16m", "shm_size": "1g", "auth": map[string]any{"tls_verify": true},
		"tty": false, "init": true, "userns": "host", "socket": "default", "logging": map[string]any{"driver": "nomad"},
	}, &driver.Spec{})
	require.NoError(t, err)
	require.Equal(t, "redis", c.image.Ref)
	require.Equal(t, []string{"/x"}, c.entrypoint)
	require.Equal(t, []int64{16 << 20, 1 << 30}, []int64{c.memorySoft, c.shmSize})
}

// TestAPodmanThatHangs: one that takes connections and says nothing makes the driver unhealthy, and nobody waits for it for long.
func TestAPodmanThatHangs(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	d, err := New(Config{Podman: true, Endpoint: "unix://" + socket, Binary: "/proc/self/exe", Clock: clock.Wall{}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	info := d.Fingerprint(t.Context())
	require.False(t, info.Healthy)
	require.Contains(t, info.HealthDescription, "no podman")
}

// podman starts one with the images of tests, which shares nothing with the machine's.
func podman(t *testing.T) *dockerdtest.Podman {
	t.Helper()
	p, err := dockerdtest.StartPodman(endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop()) })
	return p
}

// pods is a driver at that service.
func pods(t *testing.T, p *dockerdtest.Podman, change ...func(*Config)) *bench {
	t.Helper()
	return newBench(t, append(change, func(c *Config) { c.Podman, c.Endpoint = true, p.Endpoint })...)
}

// TestConformanceOfPodman is the suite of all drivers, hostile programs included.
func TestConformanceOfPodman(t *testing.T) {
	t.Parallel()
	b := pods(t, podman(t))
	info := b.Fingerprint(t.Context())
	require.True(t, info.Healthy, info.HealthDescription)
	require.Equal(t, "1", info.Attributes["driver.podman"])
	drivertest.Run(t, drivertest.Harness{
		New: func(*testing.T) driver.Driver { // it knows podman already, as an agent does
			d := b.restart(t).Driver
			d.daemon.last.Store(b.daemon.last.Load())
			return d
		},
		Config: func(p drivertest.Program) map[string]any {
			return map[string]any{"image": busybox, "network_mode": "none", "command": "/bin/sh", "args": []any{"-c", p.ShellScript()}}
		},
		Leftovers: func(t *testing.T) []string { t.Helper(); return b.containers(t) },
	})
}

// TestPodmansTasks have their options, a group's network, and live on while podman is away and the agent is another.
func TestPodmansTasks(t *testing.T) {
	t.Parallel()
	s := podman(t)
	b := pods(t, s)
	b.Restored(t.Context())
	spec := b.spec(t, map[string]any{
		"entrypoint": "/bin/sh", "args": []any{"-c", "pwd; cat own/f; cat /etc/hosts; ulimit -n; grep CapBnd /proc/self/status; df /dev/shm"},
		"working_dir": "/local", "extra_hosts": []any{"ten:10.0.0.10"}, "ulimit": map[string]any{"nofile": "300:300", "nproc": "4096"},
		"shm_size": "2m",
		"cap_drop": []any{"all"}, "readonly_rootfs": true, "memory_reservation": "16m", "labels": []any{map[string]any{"mine": "1"}},
	})
	require.NoError(t, os.Mkdir(filepath.Join(spec.Dirs.Local, "own"), 0o755))                        // read by others
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dirs.Local, "own/f"), []byte("own\n"), 0o644)) // read by others
	out := b.logged(t, spec)
	for _, want := range []string{"/local\nown\n", "10.0.0.10", "\n300\n", "CapBnd:\t0000000000000000\n", " 2048 "} {
		require.Contains(t, out, want)
	}
	first := b.run(t, b.spec(t, script2("sleep 600", nil)))
	require.Equal(t, Podman, first.State().Driver)
	spec = b.spec(t, script2("sleep 600", map[string]any{"network_mode": ""}))
	spec.NetNS = &driver.NetNS{Path: fmt.Sprintf("/proc/%d/ns/net", first.Last().Pid())}
	second := b.run(t, spec)
	want := drivertest.Sh(t, first, "readlink /proc/self/ns/net").Out
	require.Equal(t, want, drivertest.Sh(t, second, "readlink /proc/self/ns/net").Out)

	require.NoError(t, s.Halt())
	require.False(t, b.Fingerprint(t.Context()).Healthy)
	again, err := b.restart(t).Attach(t.Context(), drivertest.ThroughJSON(t, second.State()))
	require.NoError(t, err)
	require.Equal(t, want, drivertest.Sh(t, again.(*handle), "readlink /proc/self/ns/net").Out)
	require.NoError(t, second.Destroy(t.Context()))
	exit, err := again.Wait(t.Context())
	require.NoError(t, err)
	require.Error(t, exit.Err)
	require.NoError(t, s.Run())
	require.NoError(t, again.Destroy(t.Context()))
	require.Eventually(t, func() bool {
		_, err := b.Sweep(t.Context())
		return err == nil && len(b.containers(t)) == 2 // the two that nobody destroyed yet
	}, patience, tick)
}

// TestPodmansLeftoverOfTheSameNameIsReplaced: podman tells it as an error of its own.
func TestPodmansLeftoverOfTheSameNameIsReplaced(t *testing.T) {
	t.Parallel()
	replacesALeftover(t, pods(t, podman(t)))
}

// TestAContainerThatEndsJustNow is removed once podman knows that it has ended.
func TestAContainerThatEndsJustNow(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		switch {
		case r.Method != http.MethodDelete:
		case asked.Add(1) == 1:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"message": "cannot remove container x as it could not be stopped: sending SIGKILL to container x: ` +
				`container state improper: stopped"}`))
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	socket := filepath.Join(t.TempDir(), "s")
	var err error
	service.Listener, err = net.Listen("unix", socket)
	require.NoError(t, err)
	service.Start()
	t.Cleanup(service.Close)
	d, err := New(Config{Podman: true, Endpoint: "unix://" + socket, Binary: "/proc/self/exe", Clock: clock.Wall{}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, d.remove(t.Context(), "x"))
	require.Equal(t, int32(2), asked.Load())
}

// TestPodmansRunners are held as docker's are: an environment may have either.
func TestPodmansRunners(t *testing.T) {
	t.Parallel()
	p := podman(t)
	runners := func(t *testing.T) *bench { // which know podman already, as an agent's do
		t.Helper()
		b := pods(t, p)
		require.Eventually(t, func() bool { return b.Fingerprint(t.Context()).Healthy }, patience, tick)
		return b
	}
	for name, try := range map[string]func(*testing.T, *bench){
		"supervisor": func(t *testing.T, b *bench) { t.Helper(); outOfReach(t, b.warm(t, nil)) },
		"processes":  forkBomb,
		"memory":     memoryBomb,
		"disk":       func(t *testing.T, b *bench) { t.Helper(); diskIsBounded(t, b, map[string]any{}) },
		"rights": func(t *testing.T, b *bench) {
			t.Helper()
			own, other := newBench(t).warm(t, nil), b.warm(t, nil)
			require.Equal(t, "1000\n", drivertest.Sh(t, other, "id -u").Out, "never root by itself")
			for _, script := range []string{
				"grep -E '^(Cap|Seccomp:|NoNewPrivs)' /proc/self/status", "ls /sys/class/net", "ulimit -a | grep -v '(-u)'",
			} {
				require.Equal(t, drivertest.Root(t, own, script).Out, drivertest.Root(t, other, script).Out, script)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, runners(t))
		})
	}
	t.Run("network", func(t *testing.T) {
		t.Parallel()
		behindTheRules(t, newBridgeBench(t, func(c *Config) { c.Podman, c.Endpoint = true, p.Endpoint }))
	})
}
