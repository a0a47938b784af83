package cgroup

import "time"

// Limits of a group. Zero means: no limit of that kind.
type Limits struct {
	MemoryMax int64 // bytes, hard; swap is not given on top
	MemoryLow int64 // bytes, reserved (soft limit), with oversubscription
	Pids      int64
	CPUShares int64   // relative weight, Nomad's MHz; clamped to what the kernel takes
	CPUQuota  float64 // cores, hard: 0.5 is half a core
	Cores     []uint16
}

// Usage is what a group used. What the kernel does not tell is zero.
type Usage struct {
	CPUTotal      time.Duration
	CPUUser       time.Duration
	CPUSystem     time.Duration
	Throttled     uint64
	ThrottledTime time.Duration
	Memory        int64 // bytes, page cache not counted
	MemoryRaw     int64 // bytes, as the kernel counts
	MemoryPeak    int64
	RSS           int64
	Cache         int64
	Swap          int64
	MappedFile    int64
}

// cpuWeight converts v1 shares [2, 262144] to a v2 weight [1, 10000], as runc and systemd do.
func cpuWeight(shares int64) int64 {
	shares = clampShares(shares)
	return 1 + (shares-2)*9999/262142
}

// clampShares keeps shares within what the kernel takes; more than 262,144 MHz for one task weigh no more.
func clampShares(shares int64) int64 { return min(max(shares, 2), 262144) }

// period of the CPU quota, in microseconds: the kernel's default.
const cpuPeriod = 100_000

// cpuQuota is the time in a period that so many cores give, in microseconds. The kernel takes no less than 1,000.
func cpuQuota(cores float64) int64 { return max(int64(cores*cpuPeriod), 1000) }
