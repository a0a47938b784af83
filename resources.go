package drover

import (
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
)

// Resources is what a task asks for.
type Resources struct {
	CPU         int // MHz; default 100 unless Cores is set
	Cores       int
	MemoryMB    int // default 300
	MemoryMaxMB int // 0 = MemoryMB; -1 = no limit
	DiskMB      int // legacy, ignored
	IOPS        int // legacy, ignored
	Networks    []*network.Resource
	Devices     []*RequestedDevice
	NUMA        *NUMAResource
	SecretsMB   int
}

// NUMAResource is accepted and stored.
type NUMAResource struct {
	Affinity string
	Devices  []string
}

// RequestedDevice asks for devices of a kind.
type RequestedDevice struct {
	Name        string
	Count       uint64
	Constraints []*constraint.Constraint
	Affinities  []*constraint.Affinity
}

// AllocatedResources is what an allocation holds on its node.
type AllocatedResources struct {
	Tasks          map[string]*AllocatedTaskResources
	TaskLifecycles map[string]*TaskLifecycle
	Shared         AllocatedSharedResources
}

// AllocatedTaskResources is a task's share.
type AllocatedTaskResources struct {
	Cpu      AllocatedCpuResources
	Memory   AllocatedMemoryResources
	Networks []*network.Resource
	Devices  []*AllocatedDeviceResource
}

// AllocatedCpuResources is in MHz; ReservedCores are pinned.
type AllocatedCpuResources struct {
	CpuShares     int64
	ReservedCores []uint16 `json:",omitempty"`
}

// AllocatedMemoryResources is in MB.
type AllocatedMemoryResources struct {
	MemoryMB    int64
	MemoryMaxMB int64
}

// AllocatedDeviceResource names the devices given.
type AllocatedDeviceResource struct {
	Vendor    string
	Type      string
	Name      string
	DeviceIDs []string
}

// AllocatedSharedResources is shared by the allocation's tasks.
type AllocatedSharedResources struct {
	DiskMB   int64
	Networks []*network.Resource
	Ports    []network.PortMapping
}

// Capacity is an amount of a node's divisible resources.
type Capacity struct {
	CPU      int64 // MHz
	MemoryMB int64
	DiskMB   int64
}

// Add returns c + o.
func (c Capacity) Add(o Capacity) Capacity {
	return Capacity{c.CPU + o.CPU, c.MemoryMB + o.MemoryMB, c.DiskMB + o.DiskMB}
}

// Sub returns c - o.
func (c Capacity) Sub(o Capacity) Capacity {
	return Capacity{c.CPU - o.CPU, c.MemoryMB - o.MemoryMB, c.DiskMB - o.DiskMB}
}

// Min returns the lesser of c and o in each dimension.
func (c Capacity) Min(o Capacity) Capacity {
	return Capacity{min(c.CPU, o.CPU), min(c.MemoryMB, o.MemoryMB), min(c.DiskMB, o.DiskMB)}
}

// Fits reports whether c is at most o in every dimension, and else names the first that is not
// ("cpu", "memory", "disk", Nomad's words in DimensionExhausted).
func (c Capacity) Fits(o Capacity) (ok bool, dimension string) {
	switch {
	case c.CPU > o.CPU:
		return false, "cpu"
	case c.MemoryMB > o.MemoryMB:
		return false, "memory"
	case c.DiskMB > o.DiskMB:
		return false, "disk"
	}
	return true, ""
}

// Asked sums what the group asks for. A lifecycle task that does not run beside the main ones still counts:
// a simple upper bound, as sidecars and main tasks dominate in practice.
func (g *TaskGroup) Asked() Capacity {
	var c Capacity
	for _, t := range g.Tasks {
		if t.Resources != nil {
			c.CPU += int64(t.Resources.CPU)
			c.MemoryMB += int64(t.Resources.MemoryMB)
		}
	}
	if g.EphemeralDisk != nil {
		c.DiskMB = int64(g.EphemeralDisk.SizeMB)
	}
	return c
}

// Used sums what the allocation holds.
func (r *AllocatedResources) Used() Capacity {
	var c Capacity
	if r == nil {
		return c
	}
	for _, t := range r.Tasks {
		c.CPU += t.Cpu.CpuShares
		c.MemoryMB += t.Memory.MemoryMB
	}
	c.DiskMB = r.Shared.DiskMB
	return c
}
