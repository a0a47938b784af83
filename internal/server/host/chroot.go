package host

import (
	"github.com/drover-project/drover/internal/config/plugin"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/chroot"
	"github.com/drover-project/drover/internal/node/driver/qemu"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/validation"
)

// chroots are the drivers whose tasks are sandboxes with parts of the machine as their root.
func (h *Host) chroots(sandboxes *sandbox.Driver) (list []driver.Driver) {
	for _, kind := range []struct {
		name string
		make func(chroot.Config) *chroot.Driver
	}{{chroot.Exec, chroot.NewExec}, {chroot.Java, chroot.NewJava}} {
		if p := h.cfg.Driver(kind.name); p.Enabled == nil || *p.Enabled {
			c := chrootConfig(p)
			c.Sandbox, c.Images, c.Clock, c.Trees = sandboxes, h.images, h.deps.Clock, h.cfg.Client.ChrootEnv
			list = append(list, kind.make(c))
		}
	}
	if p := h.cfg.Driver(qemu.Name); p.Enabled == nil || *p.Enabled {
		list = append(list, qemu.New(qemu.Config{
			Sandbox: sandboxes, Images: h.images, Clock: h.deps.Clock, ImagePaths: p.ImagePaths, AllowArgs: p.ArgsAllowList,
			AllowHostNetwork: optional.Value(p.AllowHostNetwork),
		}))
	}
	return list
}

// chrootConfig is what the plugin's block says.
func chrootConfig(p plugin.Config) chroot.Config {
	return chroot.Config{
		AllowCaps: p.AllowCaps, HostIPC: p.DefaultIPCMode == "host", AllowHostNetwork: optional.Value(p.AllowHostNetwork),
		DeniedUIDs: ids(p.DeniedUIDs), DeniedGIDs: ids(p.DeniedGIDs),
	}
}

// ids are those of a configuration that was checked.
func ids(text string) validation.IDs {
	list, err := validation.ParseIDs(text)
	if err != nil {
		return validation.IDs{{0, ^uint32(0)}} // all
	}
	return list
}
