package host

import (
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/plugin"
	"github.com/drover-project/drover/internal/node/driver/docker"
	"github.com/drover-project/drover/internal/optional"
)

// forever is an image delay that never ends.
const forever = -1

// dockerConfig is what the plugin's block says.
func dockerConfig(p plugin.Config) docker.Config {
	c := docker.Config{
		Endpoint: p.Endpoint, AllowPrivileged: optional.Value(p.AllowPrivileged), AllowVolumes: optional.Value(p.AllowHost),
		AllowCaps: p.AllowCaps, AllowRuntimes: p.AllowRuntimes, Labels: p.ExtraLabels, Pids: p.PidsLimit,
		AllowHostNetwork: optional.Value(p.AllowHostNetwork), AllowDevices: p.AllowDevices, AllowNetworks: p.AllowNetworks,
		AllowVolumeDrivers: p.AllowVolumeDrivers, AllowSysctls: p.AllowSysctls, AllowUlimits: p.AllowUlimits,
		PullQuiet: config.Duration(p.PullActivityTimeout, 0),
	}
	images, delay := p.ImageGC()
	c.ImageDelay = config.Duration(delay, 0)
	if !images {
		c.ImageDelay = forever
	}
	if v := p.Volumes; v != nil {
		c.AllowVolumes, c.SELinux = c.AllowVolumes || optional.Value(v.Enabled), v.SELinuxLabel
	}
	if a := p.Auth; a != nil {
		c.AuthConfig, c.AuthHelper = a.Config, a.Helper
	}
	if t := p.TLS; t != nil {
		c.Cert, c.Key, c.CA = t.Cert, t.Key, t.CA
	}
	return c
}
