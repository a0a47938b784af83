package device

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/device"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/device/devicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const t4a, t4b, a100 = "GPU-aaaa", "GPU-bbbb", "GPU-cccc"

// machine has two GPUs of a kind, and one of another.
func machine(t *testing.T) *devicetest.Machine {
	t.Helper()
	m := devicetest.New(t)
	m.NVIDIA(devicetest.GPU{UUID: t4a, Model: "Tesla T4", Minor: 0, Memory: 15360},
		devicetest.GPU{UUID: t4b, Model: "Tesla T4", Minor: 1, Memory: 15360},
		devicetest.GPU{UUID: a100, Model: "NVIDIA A100", Minor: 2, Memory: 40960})
	return m
}

func open(m *devicetest.Machine, change func(*Config)) *Devices {
	of := Maker{Enabled: true, Root: m.Root, Tool: m.Tool}
	cfg := Config{NVIDIA: of, AMD: of, Intel: of, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

// health is the health of each device by its id: "" is well.
func health(groups []*drover.NodeDeviceResource) map[string]string {
	out := map[string]string{}
	for _, g := range groups {
		for _, i := range g.Instances {
			out[i.ID] = i.HealthDescription
			if i.Healthy != (i.HealthDescription == "") {
				out[i.ID] = "no reason"
			}
		}
	}
	return out
}

// Nomad's client reads the groups with the names, attributes and units that its plugin has.
func TestNVIDIA(t *testing.T) {
	t.Parallel()
	groups := open(machine(t), nil).Look(t.Context())
	data, err := json.Marshal(groups)
	require.NoError(t, err)
	var read []*api.NodeDeviceResource
	require.NoError(t, json.Unmarshal(data, &read))
	require.Len(t, read, 2)
	require.Equal(t, "nvidia/gpu/NVIDIA A100", read[0].ID())
	require.Equal(t, "nvidia/gpu/Tesla T4", read[1].ID())
	require.Len(t, read[1].Instances, 2)
	require.Equal(t, &api.NodeDevice{ID: t4b, Healthy: true}, read[1].Instances[1])
	shown := map[string]string{}
	for name, a := range read[1].Attributes {
		shown[name] = a.String()
	}
	require.Equal(t, map[string]string{
		"memory": "15360 MiB", "bar1": "256 MiB", "power": "70 W", "cores_clock": "1590 MHz", "memory_clock": "5001 MHz",
		"pci_bandwidth": "15760 MB/s", "driver_version": "550.54.15", "display_state": "Disabled", "persistence_mode": "Enabled",
	}, shown)
}

// Without nvidia-smi the driver's files are enough, and without them there is nothing.
func TestWithoutTool(t *testing.T) {
	t.Parallel()
	m := machine(t)
	require.NoError(t, os.Remove(m.Tool))
	d := open(m, func(c *Config) { c.NVIDIA.Ignored = []string{t4a} })
	groups := d.Look(t.Context())
	require.Equal(t, map[string]string{t4b: "", a100: ""}, health(groups))
	require.Equal(t, map[string]any{"driver_version": device.Text("550.54.15").Record()}, groups[0].Attributes)
	require.Empty(t, open(devicetest.New(t), nil).Look(t.Context()))
}

// A device that goes away stays as an unhealthy one, is not given to anybody, and comes back.
func TestVanish(t *testing.T) {
	t.Parallel()
	m := machine(t)
	d := open(m, nil)
	well := map[string]string{t4a: "", t4b: "", a100: ""}
	require.Equal(t, well, health(d.Look(t.Context())))
	require.NoError(t, os.RemoveAll(filepath.Join(m.Root, "proc/driver/nvidia/gpus/0000:01:00.0")))
	groups := d.Look(t.Context())
	require.Equal(t, map[string]string{t4a: "it is not there any more", t4b: "", a100: ""}, health(groups))
	require.Len(t, groups, 2, "it stays in its group")
	_, err := d.Reserve([]*drover.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "Tesla T4", DeviceIDs: []string{t4b, t4a}}})
	require.ErrorContains(t, err, "device nvidia/gpu/Tesla T4 GPU-aaaa: it is not there any more")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))

	require.NoError(t, os.Remove(filepath.Join(m.Root, "dev/nvidia1")))
	require.Contains(t, health(d.Look(t.Context()))[t4b], "/dev/nvidia1 is not there")
	m.NVIDIA(devicetest.GPU{UUID: t4a, Model: "Tesla T4"}, devicetest.GPU{UUID: t4b, Model: "Tesla T4", Minor: 1, MIG: "Enabled"},
		devicetest.GPU{UUID: a100, Model: "NVIDIA A100", Minor: 2})
	d = open(m, nil)
	divided := map[string]string{t4a: "", t4b: "it is divided (MIG), and its parts are not offered", a100: ""}
	require.Equal(t, divided, health(d.Look(t.Context())))

	require.NoError(t, os.RemoveAll(filepath.Join(m.Root, "proc")))
	require.Len(t, health(d.Look(t.Context())), 3, "the module was unloaded")
	require.Equal(t, "it is not there any more", health(d.Look(t.Context()))[a100])
}

// A tool that fails, talks nonsense, or too much: the devices are there and not well, with what it said.
func TestBrokenTool(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo 'Unable to determine the device handle for GPU 0000:01:00.0: Unknown Error'; exit 15": "Unable to determine the device handle",
		"echo nonsense": "prints what cannot be read",
		"cat /dev/zero": "it printed too much",
		"echo '<nvidia_smi_log></nvidia_smi_log>'": "nvidia-smi does not list it",
	} {
		m := machine(t)
		d := open(m, nil)
		d.Look(t.Context())
		m.Script(script)
		d.sources[2].(*nvidia).tool.last = nil // a second went by
		groups := d.Look(t.Context())
		require.Contains(t, health(groups)[t4a], want, script)
		memory, ok := groups[1].Attribute("memory")
		require.True(t, ok || want == "nvidia-smi does not list it", "what it said before is remembered")
		if ok {
			require.Equal(t, "15360 MiB", memory.Text())
		}
	}
}

// A tool that hangs is asked once, whoever asks, and the answer comes within its time.
func TestHangingTool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := &answer{done: make(chan struct{})}
		tl := &tool{argv: []string{"nvidia-smi"}, clock: clock.Wall{}, last: hang, begun: time.Now()}
		started := time.Now()
		_, err := tl.ask(t.Context())
		require.ErrorContains(t, err, "did not end within 10s")
		require.Equal(t, toolPatience+time.Second, time.Since(started))
		_, err = tl.ask(t.Context())
		require.ErrorContains(t, err, "nvidia-smi hangs")
		require.Equal(t, toolPatience+time.Second, time.Since(started), "at once")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tl.killed = false
		_, err = tl.ask(ctx)
		require.ErrorIs(t, err, context.Canceled)
		close(hang.done)
		tl.begun = time.Now()
		_, err = tl.ask(t.Context())
		require.NoError(t, err, "it has ended")
	})
}

// A tool that is killed takes what it started with it.
func TestKilledTool(t *testing.T) {
	t.Parallel()
	m := devicetest.New(t)
	m.Script("sleep 1000 & sleep 1000")
	tl := &tool{argv: []string{m.Tool}, clock: clock.Wall{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tl.run(ctx)
	require.Error(t, err)
}

// What a task needs: its own device files, those that all share, the libraries under each name, and the variables.
func TestReserveNVIDIA(t *testing.T) {
	t.Parallel()
	m := machine(t)
	d := open(m, nil)
	require.Empty(t, d.Withheld())
	d.Look(t.Context())
	require.Equal(t, map[string]string{"NVIDIA_VISIBLE_DEVICES": "void"}, d.Withheld())
	got, err := d.Reserve([]*drover.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "Tesla T4", DeviceIDs: []string{t4b}}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"NVIDIA_VISIBLE_DEVICES": t4b, "CUDA_VISIBLE_DEVICES": t4b, "DROVER_DEVICES": "/dev/nvidia1",
	}, got.Env)
	var files, libraries []string
	for _, n := range got.Nodes {
		files = append(files, n.Target)
		require.Equal(t, m.Root+n.Target, n.Source)
	}
	require.Equal(t, []string{"/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}, files, "not another one's")
	for _, l := range got.Libraries {
		libraries = append(libraries, l.Target)
		require.True(t, l.ReadOnly)
		require.Equal(t, m.Root+"/usr/lib64/libcuda.so.550.54.15", l.Source)
	}
	require.Equal(t, []string{"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.550.54.15"}, libraries)
	_, err = d.Reserve([]*drover.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "x", DeviceIDs: []string{"GPU-none"}}})
	require.ErrorContains(t, err, "it is not there any more")
	_, err = d.Reserve([]*drover.AllocatedDeviceResource{{Vendor: "acme", Type: "gpu", Name: "x", DeviceIDs: []string{"1"}}})
	require.ErrorContains(t, err, "does not offer devices of acme")
}

// Render nodes are found by sysfs, those of each vendor by its number.
func TestRenderNodes(t *testing.T) {
	t.Parallel()
	m := devicetest.New(t)
	m.Render(128, "0x8086", "0000:00:02.0", "i915", map[string]string{"device": "0x9bc4", "drm/card0/gt_max_freq_mhz": "1150"})
	m.Render(129, "0x1002", "0000:03:00.0", "amdgpu", map[string]string{
		"device": "0x74a1", "product_name": "AMD Instinct MI300X", "mem_info_vram_total": "206141652992", "mem_info_vram_used": "1073741824",
		"gpu_busy_percent": "87", "hwmon/hwmon3/power1_cap": "750000000",
	})
	m.Device("dev/kfd")
	d := open(m, nil)
	groups := d.Look(t.Context())
	require.Equal(t, map[string]string{"0000:00:02.0": "", "0000:03:00.0": ""}, health(groups))
	require.Equal(t, []string{"amd", "AMD Instinct MI300X", "intel", "0x9bc4"},
		[]string{groups[0].Vendor, groups[0].Name, groups[1].Vendor, groups[1].Name})
	require.Equal(t, map[string]any{
		"driver": device.Text("amdgpu").Record(), "memory": device.Int(196592, "MiB").Record(),
		"power": device.Int(750, "W").Record(),
	}, groups[0].Attributes)
	require.Equal(t, map[string]any{"driver": device.Text("i915").Record(), "cores_clock": device.Int(1150, "MHz").Record()},
		groups[1].Attributes)

	got, err := d.Reserve([]*drover.AllocatedDeviceResource{
		{Vendor: "amd", Type: "gpu", Name: "AMD Instinct MI300X", DeviceIDs: []string{"0000:03:00.0"}},
	})
	require.NoError(t, err)
	require.Equal(t, "/dev/dri/renderD129", got.Env["DROVER_DEVICES"])
	require.Equal(t, "/dev/kfd", got.Nodes[1].Target)
	require.True(t, got.Nodes[1].Shared)

	stats := d.Stats(t.Context(), func(string) bool { return true })
	require.Len(t, stats, 1, "Intel's kernel driver counts nothing that anybody may read")
	require.EqualValues(t, 1024, *stats[0].InstanceStats["0000:03:00.0"].Summary.IntNumeratorVal)
	require.EqualValues(t, 87, *stats[0].InstanceStats["0000:03:00.0"].Stats.Attributes["GPU utilization"].IntNumeratorVal)
}

// The samples have the names that Nomad's plugin gives them, and are those of the devices that were asked about.
func TestStats(t *testing.T) {
	t.Parallel()
	m := machine(t)
	d := open(m, nil)
	require.Empty(t, d.Stats(t.Context(), func(string) bool { return true }), "nothing was looked at yet")
	d.Look(t.Context())
	data, err := json.Marshal(d.Stats(t.Context(), func(id string) bool { return id == t4b }))
	require.NoError(t, err)
	var read []*api.DeviceGroupStats
	require.NoError(t, json.Unmarshal(data, &read))
	require.Len(t, read, 1)
	require.Equal(t, "Tesla T4", read[0].Name)
	require.Len(t, read[0].InstanceStats, 1)
	s := read[0].InstanceStats[t4b]
	require.Equal(t, "1024 / 15360 MiB", s.Summary.String())
	shown := map[string]string{}
	for name, v := range s.Stats.Attributes {
		shown[name] = v.String()
	}
	require.Equal(t, map[string]string{
		"GPU utilization": "42 %", "Memory utilization": "7 %", "Encoder utilization": "0 %", "Temperature": "28 C",
		"Memory state": "1024 / 15360 MiB", "BAR1 buffer state": "2 / 256 MiB", "Power usage": "9 / 70 W",
	}, shown)
	m.Script("exit 1")
	d.sources[2].(*nvidia).tool.last = nil
	require.Empty(t, d.Stats(t.Context(), func(string) bool { return true }))
}

// A node whose GPUs are all ignored offers none, and gives none to who asks by a variable.
func TestIgnoredDevicesAreWithheld(t *testing.T) {
	t.Parallel()
	d := open(machine(t), func(c *Config) { c.NVIDIA.Ignored = []string{t4a, t4b, a100} })
	require.Empty(t, d.Look(t.Context()))
	require.Equal(t, map[string]string{"NVIDIA_VISIBLE_DEVICES": "void"}, d.Withheld())
	d = open(machine(t), func(c *Config) { c.NVIDIA.Enabled, c.NVIDIA.Ignored = false, []string{t4a} })
	require.Empty(t, d.Look(t.Context()))
	require.Empty(t, d.Withheld(), "the node leaves them to its jobs")
}
