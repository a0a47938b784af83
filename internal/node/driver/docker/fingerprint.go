package docker

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// engine is what people call that which runs the containers.
func (d *Driver) engine() string {
	if d.cfg.Podman {
		return Podman
	}
	return "docker daemon"
}

// Fingerprint asks the daemon what it can. It also lets a Sweep run: it is called now and then.
func (d *Driver) Fingerprint(ctx context.Context) drover.DriverInfo {
	info := drover.DriverInfo{UpdateTime: d.cfg.Clock.Now(), Attributes: map[string]string{}}
	if _, err := os.Stat(d.cfg.Binary); err != nil {
		info.HealthDescription = "drover-init is missing: " + err.Error()
		return info
	}
	if os.Geteuid() != 0 {
		info.HealthDescription = "the driver " + d.Name() + " needs an agent that runs as root"
		return info
	}
	said, err := d.daemon.ask(ctx)
	if drover.CodeOf(err) == drover.Forbidden {
		info.HealthDescription = "the agent has no permission for the socket of " + d.engine() + ": " + err.Error()
		return info
	}
	if err != nil {
		info.HealthDescription = "no " + d.engine() + ": " + err.Error()
		return info
	}
	if said.OSType != "linux" {
		info.HealthDescription = "the " + d.engine() + " runs " + said.OSType + " containers"
		return info
	}
	if d.cfg.Podman && slices.ContainsFunc(said.SecurityOptions, func(o string) bool { return strings.Contains(o, "rootless") }) {
		info.HealthDescription = "podman runs without root: its containers cannot have the task's folders, which belong to the machine's users"
		return info
	}
	info.Detected, info.Healthy, info.HealthDescription = true, true, "Healthy"
	runtimes := slices.Sorted(maps.Keys(said.Runtimes))
	for key, value := range map[string]string{
		"": "1", ".version": said.ServerVersion, ".os_type": said.OSType, ".runtimes": strings.Join(runtimes, ","),
		".default_runtime": said.DefaultRuntime, ".cgroup_driver": said.CgroupDriver, ".cgroup_version": said.CgroupVersion,
		".storage_driver": said.Driver, ".live_restore": strconv.FormatBool(said.LiveRestoreEnabled),
		".privileged.enabled": strconv.FormatBool(d.cfg.AllowPrivileged), ".volumes.enabled": strconv.FormatBool(d.cfg.AllowVolumes),
	} {
		info.Attributes["driver."+d.Name()+key] = value
	}
	if !said.LiveRestoreEnabled && !d.cfg.Podman { // podman's containers have no daemon
		info.HealthDescription = "Healthy, but a restart of the docker daemon ends all tasks (live-restore is off)"
	}
	d.tidy(ctx)
	return info
}
