package host

import (
	"time"

	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/node/device"
)

// openDevices makes what finds the machine's devices, as the plugins' blocks say.
func (h *Host) openDevices() *device.Devices {
	c := device.Config{Clock: h.deps.Clock, Log: h.log("device")}
	for vendor, m := range map[string]*device.Maker{"nvidia": &c.NVIDIA, "amd": &c.AMD, "intel": &c.Intel} {
		p := h.cfg.Device(vendor)
		*m = device.Maker{Enabled: p.Enabled == nil || *p.Enabled, Ignored: p.IgnoredGPUs, Tool: p.Tool, Root: p.Root}
		if period := config.Duration(p.FingerprintPeriod, time.Minute); c.Period == 0 || period < c.Period {
			c.Period = period
		}
	}
	return device.New(c)
}
