package usage

import "time"

// The stats shapes of /v1/client/allocation/:id/stats and /v1/client/stats.

// MemoryStats is in bytes.
type MemoryStats struct {
	RSS            uint64
	Cache          uint64
	Swap           uint64
	MappedFile     uint64
	Usage          uint64
	MaxUsage       uint64
	KernelUsage    uint64
	KernelMaxUsage uint64
	Measured       []string
}

// CpuStats is in percent of a core and MHz (ticks).
type CpuStats struct {
	SystemMode       float64
	UserMode         float64
	TotalTicks       float64
	ThrottledPeriods uint64
	ThrottledTime    uint64
	Percent          float64
	Measured         []string
}

// ResourceUsage is a sample.
type ResourceUsage struct {
	MemoryStats *MemoryStats
	CpuStats    *CpuStats
	DeviceStats []*DeviceGroupStats
}

// TaskResourceUsage is a task's sample; Timestamp is when it was taken (unix ns), also for a cached one.
type TaskResourceUsage struct {
	ResourceUsage *ResourceUsage
	Timestamp     int64
	Pids          map[string]*ResourceUsage
}

// AllocResourceUsage sums the running tasks.
type AllocResourceUsage struct {
	ResourceUsage *ResourceUsage
	Tasks         map[string]*TaskResourceUsage
	Timestamp     int64
	Disk          *AllocDiskUsage `json:",omitempty"`
}

// AllocDiskUsage is what an allocation's folder takes on its node's disk.
type AllocDiskUsage struct {
	Bytes     uint64 // of blocks in use; a file with several names counts once
	Files     uint64 // and folders
	Timestamp int64  // when it was measured, unix ns
	Partial   bool   `json:",omitempty"` // there are more: the counting was ended
}

// HostStats is a node's sample.
type HostStats struct {
	Memory           *HostMemoryStats
	CPU              []*HostCPUStats
	DiskStats        []*HostDiskStats
	AllocDirStats    *HostDiskStats
	DeviceStats      []*DeviceGroupStats
	Uptime           uint64
	Timestamp        int64
	CPUTicksConsumed float64
}

// HostMemoryStats is in bytes.
type HostMemoryStats struct{ Total, Available, Used, Free uint64 }

// HostCPUStats is in percent.
type HostCPUStats struct {
	CPU          string
	User         float64
	System       float64
	Idle         float64
	TotalPercent float64
	TotalTicks   float64
}

// HostDiskStats is in bytes.
type HostDiskStats struct {
	Device            string
	Mountpoint        string
	Size              uint64
	Used              uint64
	Available         uint64
	UsedPercent       float64
	InodesUsedPercent float64
}

// DeviceGroupStats are the samples of equal devices, by their ids.
type DeviceGroupStats struct {
	Vendor        string
	Type          string
	Name          string
	InstanceStats map[string]*DeviceStats
}

// DeviceStats is a device's sample.
type DeviceStats struct {
	Summary   *StatValue  // what says most about it
	Stats     *StatObject // all of it
	Timestamp time.Time   // when it was taken
}

// StatObject holds values by their names.
type StatObject struct {
	Nested     map[string]*StatObject
	Attributes map[string]*StatValue
}

// StatValue is one value; a number with a denominator is a part of that.
type StatValue struct {
	FloatNumeratorVal   *float64 `json:",omitempty"`
	FloatDenominatorVal *float64 `json:",omitempty"`
	IntNumeratorVal     *int64   `json:",omitempty"`
	IntDenominatorVal   *int64   `json:",omitempty"`
	StringVal           *string  `json:",omitempty"`
	BoolVal             *bool    `json:",omitempty"`
	Unit                string   `json:",omitempty"`
	Desc                string   `json:",omitempty"`
}
