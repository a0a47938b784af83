package qemu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/network"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	info := b.Fingerprint(t.Context())
	require.True(t, info.Healthy, info.HealthDescription)
	require.Equal(t, "1", info.Attributes["driver.qemu"])
	require.Equal(t, "7.2.17", info.Attributes["driver.qemu.version"])
	b = newBench(t, func(c *Config) { c.Binary = "/no/such/qemu" })
	info = b.Fingerprint(t.Context())
	require.False(t, info.Healthy)
	require.Contains(t, info.HealthDescription, "finding qemu")
}

func TestProblemsOfAConfiguration(t *testing.T) {
	t.Parallel()
	d := New(Config{Sandbox: sandbox.New(sandbox.Config{}), AllowArgs: []string{"-nodefaults", "-device"}})
	for says, config := range map[string]map[string]any{
		"image_path: a qemu task needs the path of an image": {"image_path": ""},
		`accelerator: "hvf" is none of tcg, kvm`:             {"accelerator": "hvf"},
		`machine_type: "pc,accel=kvm" is no name`:            {"machine_type": "pc,accel=kvm"},
		`emulator: "qemu-system-arm" is not possible`:        {"emulator": "qemu-system-arm"},
		`drive_interface: "ide,file=/x" is none of`:          {"drive_interface": "ide,file=/x"},
		`port_map: "x" of "http" is no port`:                 {"port_map": map[string]any{"http": "x"}},
		`port_map: "70000" of "http" is no port`:             {"port_map": []any{map[string]any{"http": 70000}}},
		`args: "-drive" is not among the options`:            {"args": []any{"-drive", "file=/etc/shadow"}},
		`args: "--monitor" is not among the options`:         {"args": []any{"--monitor", "tcp::4444,server"}},
		`args: " -monitor" is not among the options`:         {"args": []any{" -monitor"}},
		`args: "--daemonize" cannot be had`:                  {"args": []any{"--daemonize"}},
		`unknown key "imagepath"; did you mean "image_path"`: {"imagepath": "x"},
	} {
		if config["image_path"] == nil {
			config["image_path"] = "x"
		}
		err := d.Validate(&drover.Task{Driver: Name, Config: config})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), says)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, d.Validate(&drover.Task{Driver: Name, Config: map[string]any{
		"image_path": "local/x", "accelerator": "kvm", "machine_type": "q35", "emulator": "x86_64",
		"drive_interface": "virtio", "graceful_shutdown": true, "guest_agent": true,
		"args": []any{"-nodefaults", "--device", "e1000"}, "port_map": map[string]any{"http": 80},
	}}))
}

// TestImagesThatAreNotATasks: links and paths that lead elsewhere.
func TestImagesThatAreNotATasks(t *testing.T) {
	t.Parallel()
	allowed, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(allowed, "base.img"), []byte("base"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(other, "secret.img"), []byte("secret"), 0o644))
	require.NoError(t, os.Symlink(filepath.Join(other, "secret.img"), filepath.Join(allowed, "link.img")))
	b := newBench(t, func(c *Config) { c.ImagePaths = []string{allowed} })
	for path, says := range map[string]string{
		"../../x": "leads out of the task's folder", "/etc/shadow": "image_paths of plugin", allowed + "/link.img": "image_paths of plugin",
		allowed + "/../x": "image_path", "/local/../etc/shadow": "image_path", allowed + "x/a": "image_path",
	} {
		_, err := b.Start(t.Context(), b.spec(t, map[string]any{"image_path": path}))
		var start *driver.StartError
		require.ErrorAs(t, err, &start, path)
		require.False(t, start.Recoverable)
		require.ErrorContains(t, err, says, path)
	}
	spec := b.spec(t, map[string]any{"image_path": allowed + "/base.img"})
	h := drivertest.Start(t, b, spec)
	_, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Contains(t, printed(t, &spec), "image base")

	// A link of the task's own leads no further than the sandbox.
	spec = b.spec(t, map[string]any{"image_path": "local/link.img"})
	require.NoError(t, os.Symlink(filepath.Join(other, "secret.img"), filepath.Join(spec.Dirs.Local, "link.img")))
	h = drivertest.Start(t, b, spec)
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.NotZero(t, exit.Code)
	require.NotContains(t, printed(t, &spec), "image secret")
}

// TestTheCommandLine is Nomad's, in a sandbox in which the machine's secrets are not.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, map[string]any{
		"args": []any{"-drive", "file=/local/a.img"}, "drive_interface": "virtio", "port_map": map[string]any{"http": 80, "ssh": 22},
	})
	spec.Cores = []uint16{0}
	spec.Ports = []network.PortMapping{{Label: "http", Value: 20001, To: 8080, HostIP: "127.0.0.1"}, {Label: "ssh", Value: 20002}}
	h := drivertest.Start(t, b, spec)
	_, err := h.Wait(t.Context())
	require.NoError(t, err)
	out := printed(t, &spec)
	require.Contains(t, out, "-machine type=pc,accel=tcg -name a.img -m 128M -drive file=/local/a.img,if=virtio -nographic -smp 1 "+
		"-drive file=/local/a.img "+
		"-netdev user,id=user.0,hostfwd=udp:127.0.0.1:20001-:80,hostfwd=tcp:127.0.0.1:20001-:80,"+
		"hostfwd=udp::20002-:22,hostfwd=tcp::20002-:22 "+
		"-device virtio-net,netdev=user.0\n")
	require.NotContains(t, out, "reads /etc/shadow")
	require.Contains(t, out, "image mine")

	c := taskConfig{machine: "q35", accel: "kvm", drive: "ide", graceful: true, guestAgent: true, ports: map[string]int{"x": 1}}
	argv, err := command("q", "/local/a,if=none,file=b", &c,
		&driver.Spec{MemoryMB: 64, Ports: []network.PortMapping{{Label: "x", Value: 20001, To: 8080, HostIP: "127.0.0.1"}}}, false)
	require.NoError(t, err)
	line := strings.Join(argv, " ")
	require.Contains(t, line, "file=/local/a,,if=none,,file=b,if=ide", "a comma in a name begins no option")
	require.Contains(t, line, "-cpu host -monitor unix:/secrets/qemu-monitor.sock,server,nowait "+
		"-chardev socket,path=/secrets/qemu-guest-agent.sock")
	require.Contains(t, line, "hostfwd=tcp::8080-:1", "where the bridge leads")
	_, err = command("q", "/local/a", &taskConfig{ports: map[string]int{"none": 1}}, &driver.Spec{}, false)
	require.ErrorContains(t, err, `port_map: the group has no port "none"`)
}

// TestThePowerButton: also after a restart of the agent; a machine that does not hear it is ended after the timeout.
func TestThePowerButton(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ready := func(spec *driver.Spec) {
		require.Eventually(t, func() bool { return strings.Contains(printed(t, spec), "ready") }, time.Minute, 5*time.Millisecond)
	}
	spec := b.spec(t, map[string]any{"graceful_shutdown": true})
	h := drivertest.Start(t, b, spec)
	ready(&spec)
	again, err := b.remake().Attach(t.Context(), drivertest.ThroughJSON(t, h.State()))
	require.NoError(t, err)
	require.Equal(t, Name, again.State().Driver)
	require.NoError(t, again.Stop(t.Context(), "", time.Minute))
	exit, err := again.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, exit.Code)
	require.Contains(t, printed(t, &spec), "told b'system_powerdown")
	require.NoError(t, again.Destroy(t.Context()))

	spec = b.spec(t, map[string]any{"graceful_shutdown": true, "args": []any{"deaf"}})
	h = drivertest.Start(t, b, spec)
	ready(&spec)
	require.NoError(t, h.Stop(t.Context(), "", 50*time.Millisecond))
	exit, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 137, exit.Code)

	// A link in the socket's place is not followed: nobody else is told.
	spec = b.spec(t, map[string]any{"graceful_shutdown": true, "args": []any{"deaf"}})
	h = drivertest.Start(t, b, spec)
	ready(&spec)
	socket := filepath.Join(spec.Dirs.Secrets, monitorSocket)
	require.NoError(t, os.Remove(socket))
	require.NoError(t, os.Symlink("/run/docker.sock", socket))
	require.NoError(t, h.Stop(t.Context(), "", time.Millisecond))
	exit, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.NotZero(t, exit.Code)
}

// TestWhatAMachineHasNot: executions, files and signals would be qemu's; its usage is known.
func TestWhatAMachineHasNot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := drivertest.Start(t, b, b.spec(t, map[string]any{"args": []any{"sleep"}}))
	require.NotImplements(t, (*driver.Execer)(nil), h)
	require.NotImplements(t, (*driver.Filer)(nil), h)
	require.ErrorIs(t, h.Signal(t.Context(), "SIGHUP"), driver.ErrNotSupported)
	u, err := h.(driver.Meter).Usage(t.Context())
	require.NoError(t, err)
	require.NotZero(t, u.Timestamp)
	require.NoError(t, h.Stop(t.Context(), "", time.Minute))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 143, exit.Code)
}
