package config

import (
	"strconv"

	"github.com/drover-project/drover/internal/config/clouds"
	"github.com/drover-project/drover/internal/config/plugin"
)

// Device returns the plugin block of a vendor's devices (nvidia, amd, intel), or an empty one.
func (a *Agent) Device(vendor string) plugin.Config {
	for _, p := range a.Plugins {
		if p.Vendor() == vendor && p.Config != nil {
			return *p.Config
		}
	}
	return plugin.Config{}
}

// Driver returns the named driver's plugin block, or an empty one, switched off where Nomad's older options do not let the node have it.
func (a *Agent) Driver(name string) plugin.Config {
	c := a.driver(name)
	if a.Client != nil && !clouds.Allowed(a.Client.Options, "driver", name) {
		c.Enabled = new(false)
	}
	return c
}

func (a *Agent) driver(name string) plugin.Config {
	for _, p := range a.Plugins {
		if p.Driver() == name && p.Config != nil {
			return *p.Config
		}
	}
	if on, err := strconv.ParseBool(a.Client.Options["driver."+name+".enable"]); err == nil { // Nomad's older way
		return plugin.Config{Enabled: &on}
	}
	return plugin.Config{}
}
