package taskrunner

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/network"
)

// spec is what the driver gets: everything interpolated, resources as placed.
func spec(alloc *drover.Allocation, r *hook.Request, id string) driver.Spec {
	s := driver.Spec{
		AllocID: alloc.ID, TaskName: r.Task.Name, ID: id, Job: alloc.JobID, Group: r.Group.Name,
		Config: r.Env.ReplaceConfig(r.Task.Config), Env: r.Env.Vars(), User: r.Env.Replace(r.Task.User), Dirs: r.Dirs,
		Mounts: r.Mounts, Devices: r.Devices, Log: logConfig(r), Pool: r.Group.Pool != nil,
	}
	if t := r.Task.Resources; t != nil {
		s.CPUMHz, s.MemoryMB, s.MemoryMaxMB = int64(t.CPU), int64(t.MemoryMB), int64(t.MemoryMaxMB)
	}
	if r.Group.EphemeralDisk != nil {
		s.DiskMB = int64(r.Group.EphemeralDisk.SizeMB)
	}
	if a := alloc.AllocatedResources; a != nil {
		s.Ports, s.Networks = a.Shared.Ports, a.Shared.Networks
		if a.Shared.DiskMB > 0 {
			s.DiskMB = a.Shared.DiskMB
		}
		if t := a.Tasks[r.Task.Name]; t != nil {
			s.CPUMHz, s.Cores = t.Cpu.CpuShares, t.Cpu.ReservedCores
			s.MemoryMB, s.MemoryMaxMB = t.Memory.MemoryMB, t.Memory.MemoryMaxMB
			if len(s.Networks) == 0 {
				s.Networks = t.Networks
			}
		}
	}
	if len(s.Networks) == 0 { // without ports nothing was allocated: the mode counts all the same
		s.Networks = r.Group.Networks
	}
	s.Networks = r.Env.Networks(s.Networks)
	return s
}

// resolved gives a network the name servers that its plugins named, unless the job names some.
func resolved(networks []*network.Resource, ns *driver.NetNS) []*network.Resource {
	if ns == nil || ns.Status == nil || ns.Status.DNS == nil || len(networks) == 0 || networks[0].DNS != nil {
		return networks
	}
	first := new(*networks[0])
	first.DNS = ns.Status.DNS
	return append([]*network.Resource{first}, networks[1:]...)
}

// logConfig returns where the driver writes the task's output, and how much. Defaults are Nomad's: 10 files of 10 MB for
// each stream.
func logConfig(r *hook.Request) driver.LogConfig {
	l := driver.LogConfig{Dir: r.Dir.Logs(), MaxFiles: 10, MaxFileSize: 10 << 20}
	if c := r.Task.LogConfig; c != nil {
		l.Disabled = c.Disabled
		if c.MaxFiles > 0 {
			l.MaxFiles = c.MaxFiles
		}
		if c.MaxFileSizeMB > 0 {
			l.MaxFileSize = int64(c.MaxFileSizeMB) << 20
		}
	}
	return l
}
