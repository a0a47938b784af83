package grouped

import (
	"time"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/usage"
)

// Meter turns what a task used up to now into Nomad's sample: percentages are of the time between two samples, and the
// first's of the time since the start. Its owner locks it.
type Meter struct {
	Started time.Time
	CoreMHz int64 // for ticks; 0: they are not told

	at   time.Time
	last cgroup.Usage
}

// Sample returns the sample taken at now. Page cache is told apart, and is not in MemoryStats.Usage as far as it can be
// dropped.
func (m *Meter) Sample(now time.Time, u cgroup.Usage) *usage.TaskResourceUsage {
	from, last := m.at, m.last
	if from.IsZero() {
		from = m.Started
	}
	m.at, m.last = now, u
	elapsed := max(now.Sub(from), time.Millisecond)
	percent := func(used time.Duration) float64 { return 100 * float64(max(used, 0)) / float64(elapsed) }
	all := &struct { // one allocation: a node makes a thousand of these a second
		sample usage.TaskResourceUsage
		usage  usage.ResourceUsage
		cpu    usage.CpuStats
		memory usage.MemoryStats
	}{memory: memory(u)}
	all.cpu = usage.CpuStats{
		UserMode: percent(u.CPUUser - last.CPUUser), SystemMode: percent(u.CPUSystem - last.CPUSystem),
		Percent: percent(u.CPUTotal - last.CPUTotal), ThrottledPeriods: u.Throttled, ThrottledTime: uint64(u.ThrottledTime), // not negative
		Measured: measuredCPU,
	}
	all.cpu.TotalTicks = all.cpu.Percent / 100 * float64(m.CoreMHz)
	all.usage = usage.ResourceUsage{CpuStats: &all.cpu, MemoryStats: &all.memory, DeviceStats: noDevices}
	all.sample = usage.TaskResourceUsage{Timestamp: now.UnixNano(), ResourceUsage: &all.usage, Pids: noPids}
	return &all.sample
}

// constants, which nobody changes
var (
	measuredCPU    = []string{"System Mode", "User Mode", "Percent", "Throttled Periods", "Throttled Time"}
	measuredMemory = []string{"RSS", "Cache", "Swap", "Mapped File", "Usage", "Max Usage"}
	noDevices      = []*usage.DeviceGroupStats{}
	noPids         = map[string]*usage.ResourceUsage{}
)

// memory is the part of a sample that needs no rates; what the kernel does not tell is 0.
func memory(u cgroup.Usage) usage.MemoryStats {
	n := func(v int64) uint64 { return uint64(max(v, 0)) }
	return usage.MemoryStats{
		RSS: n(u.RSS), Cache: n(u.Cache), Swap: n(u.Swap), MappedFile: n(u.MappedFile), Usage: n(u.Memory), MaxUsage: n(u.MemoryPeak),
		Measured: measuredMemory,
	}
}
