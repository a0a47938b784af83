package docker

import (
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
)

// A task's devices come by the vendor's runtime where the daemon has it, else as files; its variables reach the runtime.
func TestDevicesOfATask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, runtime, want string
		runtimes            []string
		files               bool
	}{
		{"the daemon has the vendor's runtime", "", "nvidia", []string{"runc", "nvidia"}, false},
		{"the job names it, too", "nvidia", "nvidia", []string{"runc", "nvidia"}, false},
		{"the daemon does not have it", "", "", []string{"runc"}, true},
		{"the job names another", "crun", "crun", []string{"crun", "nvidia"}, true},
	} {
		d := &Driver{}
		info := &system.Info{Runtimes: map[string]system.RuntimeWithStatus{}}
		for _, r := range c.runtimes {
			info.Runtimes[r] = system.RuntimeWithStatus{}
		}
		d.daemon.last.Store(info)
		config := taskConfig{runtime: c.runtime, labels: map[string]string{}}
		spec := &driver.Spec{
			TaskName: "t", AllocID: "a", Env: map[string]string{"NVIDIA_VISIBLE_DEVICES": "GPU-1", "OTHER": "x"},
			Devices: driver.Devices{
				Runtime: "nvidia", LibraryPath: "/lib/nvidia", Nodes: []driver.DeviceNode{{Source: "/host/dev/nvidia0", Target: "/dev/nvidia0"}},
				Libraries: []driver.Mount{{Source: "/host/libcuda.so", Target: "/lib/nvidia/libcuda.so", ReadOnly: true}},
			},
		}
		require.NoError(t, d.giveDevices(t.Context(), spec, &config), c.name)
		out, err := d.options(spec, config, images.Image{}, first{})
		require.NoError(t, err)
		require.Equal(t, c.want, out.HostConfig.Runtime, c.name)
		require.Equal(t, []string{"NVIDIA_VISIBLE_DEVICES=GPU-1"}, out.Config.Env)
		if !c.files {
			require.Empty(t, out.HostConfig.Devices, c.name)
			require.NotContains(t, environment(spec, config, images.Image{}), "LD_LIBRARY_PATH")
			continue
		}
		require.Equal(t, []container.DeviceMapping{
			{PathOnHost: "/host/dev/nvidia0", PathInContainer: "/dev/nvidia0", CgroupPermissions: "rw"},
		}, out.HostConfig.Devices, c.name)
		library := out.HostConfig.Mounts[len(out.HostConfig.Mounts)-1]
		require.Equal(t, "/lib/nvidia/libcuda.so", library.Target)
		require.True(t, library.ReadOnly)
		require.Equal(t, "/lib/nvidia", environment(spec, config, images.Image{})["LD_LIBRARY_PATH"])
		require.Equal(t, "/own:/lib/nvidia", environment(spec, config, images.Image{Env: []string{"LD_LIBRARY_PATH=/own"}})["LD_LIBRARY_PATH"])
	}
}
