package docker

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"

	"github.com/drover-project/drover/internal/node/driver"
)

// GivesDevices implements driver.Devicer.
func (d *Driver) GivesDevices() string { return "" }

// giveDevices lets the container to the task's devices: by the vendor's runtime, where the daemon has it and the job names no other,
// else by the device files and libraries themselves. Leave is only needed for devices that the job names itself.
func (d *Driver) giveDevices(ctx context.Context, spec *driver.Spec, c *taskConfig) error {
	given := &spec.Devices
	if given.Runtime != "" && (c.runtime == "" || c.runtime == given.Runtime) {
		info, err := d.daemon.get(ctx)
		if err != nil {
			return err
		}
		if _, has := info.Runtimes[given.Runtime]; has {
			c.runtime, given.Nodes, given.Libraries = given.Runtime, nil, nil
		}
	}
	for _, n := range given.Nodes {
		c.devices = append(c.devices, container.DeviceMapping{PathOnHost: n.Source, PathInContainer: n.Target, CgroupPermissions: "rw"})
	}
	spec.Mounts = slices.Concat(spec.Mounts, given.Libraries)
	return nil
}

// runtimeEnv are the variables that NVIDIA's runtime reads of the container itself, over its image's.
func runtimeEnv(spec *driver.Spec) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		if strings.HasPrefix(name, "NVIDIA_") {
			out = append(out, name+"="+spec.Env[name])
		}
	}
	return out
}
