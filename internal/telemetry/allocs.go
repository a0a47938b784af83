package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"drover"
)

// Allocs are the metrics of running tasks, under Nomad's names: gauges nomad.client.allocs.memory.* and .cpu.*, and
// counters of how tasks ended. They are fed, not sampled: what nobody collects is not there.
type Allocs struct {
	gauges   map[string]*prometheus.GaugeVec
	complete *prometheus.CounterVec
	failed   *prometheus.CounterVec
	oom      *prometheus.CounterVec
}

// reading is one gauge of a task's usage. Nomad leaves out what is zero, unless the source says it measured it.
type reading struct {
	name     string
	measured string
	value    func(*drover.ResourceUsage) float64
}

func readings() []reading {
	memory := func(f func(*drover.MemoryStats) uint64) func(*drover.ResourceUsage) float64 {
		return func(u *drover.ResourceUsage) float64 {
			if u.MemoryStats == nil {
				return 0
			}
			return float64(f(u.MemoryStats))
		}
	}
	cpu := func(f func(*drover.CpuStats) float64) func(*drover.ResourceUsage) float64 {
		return func(u *drover.ResourceUsage) float64 {
			if u.CpuStats == nil {
				return 0
			}
			return f(u.CpuStats)
		}
	}
	return []reading{
		{"memory.rss", "RSS", memory(func(s *drover.MemoryStats) uint64 { return s.RSS })},
		{"memory.cache", "Cache", memory(func(s *drover.MemoryStats) uint64 { return s.Cache })},
		{"memory.swap", "Swap", memory(func(s *drover.MemoryStats) uint64 { return s.Swap })},
		{"memory.mapped_file", "Mapped File", memory(func(s *drover.MemoryStats) uint64 { return s.MappedFile })},
		{"memory.usage", "Usage", memory(func(s *drover.MemoryStats) uint64 { return s.Usage })},
		{"memory.max_usage", "Max Usage", memory(func(s *drover.MemoryStats) uint64 { return s.MaxUsage })},
		{"memory.kernel_usage", "Kernel Usage", memory(func(s *drover.MemoryStats) uint64 { return s.KernelUsage })},
		{"memory.kernel_max_usage", "Kernel Max Usage", memory(func(s *drover.MemoryStats) uint64 { return s.KernelMaxUsage })},
		{"cpu.total_percent", "Percent", cpu(func(s *drover.CpuStats) float64 { return s.Percent })},
		{"cpu.system", "System Mode", cpu(func(s *drover.CpuStats) float64 { return s.SystemMode })},
		{"cpu.user", "User Mode", cpu(func(s *drover.CpuStats) float64 { return s.UserMode })},
		{"cpu.throttled_time", "Throttled Time", cpu(func(s *drover.CpuStats) float64 { return float64(s.ThrottledTime) })},
		{"cpu.throttled_periods", "Throttled Periods", cpu(func(s *drover.CpuStats) float64 { return float64(s.ThrottledPeriods) })},
		{"cpu.total_ticks", "Total Ticks", cpu(func(s *drover.CpuStats) float64 { return s.TotalTicks })},
	}
}

// Allocs registers the metrics; call it once.
func (m *Metrics) Allocs() *Allocs {
	labels := []string{"job", "task_group", "alloc_id", "task", "namespace"}
	a := &Allocs{
		gauges:   map[string]*prometheus.GaugeVec{},
		complete: m.Counter("nomad.client.allocs.complete", "tasks that ended well", "job", "task_group", "namespace"),
		failed:   m.Counter("nomad.client.allocs.failed", "tasks that failed", "job", "task_group", "namespace"),
		oom:      m.Counter("nomad.client.allocs.oom_killed", "tasks killed for want of memory", "job", "task_group", "namespace"),
	}
	for _, r := range readings() {
		a.gauges[r.name] = m.Gauge("nomad.client.allocs."+r.name, "of a running task", labels...)
	}
	return a
}

// Sample takes a task's usage.
func (a *Allocs) Sample(alloc *drover.Allocation, task string, usage *drover.TaskResourceUsage) {
	if usage == nil || usage.ResourceUsage == nil {
		return
	}
	u := usage.ResourceUsage
	for _, r := range readings() {
		if v := r.value(u); v != 0 || measured(u, r.measured) {
			a.gauges[r.name].WithLabelValues(alloc.JobID, alloc.TaskGroup, alloc.ID, task, alloc.Namespace).Set(v)
		}
	}
}

func measured(u *drover.ResourceUsage, name string) bool {
	return u.MemoryStats != nil && slices.Contains(u.MemoryStats.Measured, name) ||
		u.CpuStats != nil && slices.Contains(u.CpuStats.Measured, name)
}

// Ended counts a task's end and forgets its gauges.
func (a *Allocs) Ended(alloc *drover.Allocation, task string, failed, oomKilled bool) {
	for _, g := range a.gauges {
		g.DeleteLabelValues(alloc.JobID, alloc.TaskGroup, alloc.ID, task, alloc.Namespace)
	}
	kind := []string{alloc.JobID, alloc.TaskGroup, alloc.Namespace}
	if failed {
		a.failed.WithLabelValues(kind...).Inc()
	} else {
		a.complete.WithLabelValues(kind...).Inc()
	}
	if oomKilled {
		a.oom.WithLabelValues(kind...).Inc()
	}
}
