package telemetry

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/usage"
)

// Allocs are the metrics of running tasks, under Nomad's names: gauges nomad.client.allocs.memory.* and .cpu.*, and
// counters of how tasks ended. They are fed, not sampled: what nobody collects is not there. A sample is only kept, and
// made into gauges when somebody reads them.
type Allocs struct {
	mu     sync.Mutex
	latest map[taskKey]taskSample // guarded by mu

	complete *prometheus.CounterVec
	failed   *prometheus.CounterVec
	oom      *prometheus.CounterVec
}

type taskKey struct{ allocID, task string }

// taskSample is the newest usage of a task, with what labels and counters need.
type taskSample struct {
	job, group, namespace string
	usage                 *usage.ResourceUsage
	at                    int64                          // unix ns
	ticks                 float64                        // MHz, times the seconds of each sample before
	allocated             *drover.AllocatedTaskResources // nil: not known
}

// reading is one gauge of a task's usage. Nomad leaves out what is zero, unless the source says it measured it.
type reading struct {
	name     string
	measured string
	value    func(*usage.ResourceUsage) float64
}

// readings are the metrics of a task under Nomad's names, and how each is read from its resource usage.
func readings() []reading {
	memory := func(f func(*usage.MemoryStats) uint64) func(*usage.ResourceUsage) float64 {
		return func(u *usage.ResourceUsage) float64 {
			if u.MemoryStats == nil {
				return 0
			}
			return float64(f(u.MemoryStats))
		}
	}
	cpu := func(f func(*usage.CpuStats) float64) func(*usage.ResourceUsage) float64 {
		return func(u *usage.ResourceUsage) float64 {
			if u.CpuStats == nil {
				return 0
			}
			return f(u.CpuStats)
		}
	}
	return []reading{
		{"memory.rss", "RSS", memory(func(s *usage.MemoryStats) uint64 { return s.RSS })},
		{"memory.cache", "Cache", memory(func(s *usage.MemoryStats) uint64 { return s.Cache })},
		{"memory.swap", "Swap", memory(func(s *usage.MemoryStats) uint64 { return s.Swap })},
		{"memory.mapped_file", "Mapped File", memory(func(s *usage.MemoryStats) uint64 { return s.MappedFile })},
		{"memory.usage", "Usage", memory(func(s *usage.MemoryStats) uint64 { return s.Usage })},
		{"memory.max_usage", "Max Usage", memory(func(s *usage.MemoryStats) uint64 { return s.MaxUsage })},
		{"memory.kernel_usage", "Kernel Usage", memory(func(s *usage.MemoryStats) uint64 { return s.KernelUsage })},
		{"memory.kernel_max_usage", "Kernel Max Usage", memory(func(s *usage.MemoryStats) uint64 { return s.KernelMaxUsage })},
		{"cpu.total_percent", "Percent", cpu(func(s *usage.CpuStats) float64 { return s.Percent })},
		{"cpu.system", "System Mode", cpu(func(s *usage.CpuStats) float64 { return s.SystemMode })},
		{"cpu.user", "User Mode", cpu(func(s *usage.CpuStats) float64 { return s.UserMode })},
		{"cpu.throttled_time", "Throttled Time", cpu(func(s *usage.CpuStats) float64 { return float64(s.ThrottledTime) })},
		{"cpu.throttled_periods", "Throttled Periods", cpu(func(s *usage.CpuStats) float64 { return float64(s.ThrottledPeriods) })},
		{"cpu.total_ticks", "Total Ticks", cpu(func(s *usage.CpuStats) float64 { return s.TotalTicks })},
	}
}

// Allocs registers the metrics; call it once.
func (m *Metrics) Allocs() *Allocs {
	a := &Allocs{
		latest:   map[taskKey]taskSample{},
		complete: m.Counter("nomad.client.allocs.complete", "tasks that ended well", "job", "task_group", "namespace"),
		failed:   m.Counter("nomad.client.allocs.failed", "tasks that failed", "job", "task_group", "namespace"),
		oom:      m.Counter("nomad.client.allocs.oom_killed", "tasks killed for want of memory", "job", "task_group", "namespace"),
	}
	m.Source(a.read)
	return a
}

// Sample takes a task's usage, which is not changed afterwards.
func (a *Allocs) Sample(alloc *drover.Allocation, task string, usage *usage.TaskResourceUsage) {
	if usage == nil || usage.ResourceUsage == nil {
		return
	}
	s := taskSample{job: alloc.JobID, group: alloc.TaskGroup, namespace: alloc.Namespace, usage: usage.ResourceUsage, at: usage.Timestamp}
	if r := alloc.AllocatedResources; r != nil {
		s.allocated = r.Tasks[task]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, ok := a.latest[taskKey{alloc.ID, task}]; ok {
		s.ticks = before.ticks + ticksSince(before.at, s.at, s.usage)
	}
	a.latest[taskKey{alloc.ID, task}] = s
}

// ticksSince is what a task used since its last sample. Nomad adds up its samples, one a second: that is the same.
func ticksSince(before, now int64, usage *usage.ResourceUsage) float64 {
	if usage.CpuStats == nil || now <= before {
		return 0
	}
	return usage.CpuStats.TotalTicks * time.Duration(now-before).Seconds()
}

// read emits the latest sample of every task. The lock is held only to copy, as emitting thousands of values takes
// long.
func (a *Allocs) read(emit Emit) {
	a.mu.Lock()
	latest := maps.Clone(a.latest)
	a.mu.Unlock()
	list := readings()
	for key, s := range latest {
		labels := []string{"job", s.job, "task_group", s.group, "alloc_id", key.allocID, "task", key.task, "namespace", s.namespace}
		for _, r := range list {
			if v := r.value(s.usage); v != 0 || measured(s.usage, r.measured) {
				emit("nomad.client.allocs."+r.name, v, labels...)
			}
		}
		emit("nomad.client.allocs.cpu.total_ticks_count", s.ticks, labels...)
		if r := s.allocated; r != nil {
			emit("nomad.client.allocs.cpu.allocated", float64(r.Cpu.CpuShares), labels...)
			emit("nomad.client.allocs.memory.allocated", float64(r.Memory.MemoryMB<<20), labels...)
			if r.Memory.MemoryMaxMB > 0 {
				emit("nomad.client.allocs.memory.max_allocated", float64(r.Memory.MemoryMaxMB<<20), labels...)
			}
		}
	}
}

// measured reports whether the driver measures this value at all: a measured 0 is a value, another 0 is none.
func measured(u *usage.ResourceUsage, name string) bool {
	return u.MemoryStats != nil && slices.Contains(u.MemoryStats.Measured, name) ||
		u.CpuStats != nil && slices.Contains(u.CpuStats.Measured, name)
}

// Ended counts a task's end and forgets its gauges. What was dispatched counts for the job that it was dispatched from, and so
// does what a periodic job has begun. Else each would leave numbers of its own for as long as the agent runs.
func (a *Allocs) Ended(alloc *drover.Allocation, task string, failed, oomKilled bool) {
	a.mu.Lock()
	delete(a.latest, taskKey{alloc.ID, task})
	a.mu.Unlock()
	job := alloc.JobID
	if alloc.Job != nil && alloc.Job.ParentID != "" {
		job = alloc.Job.ParentID
	}
	kind := []string{job, alloc.TaskGroup, alloc.Namespace}
	if failed {
		a.failed.WithLabelValues(kind...).Inc()
	} else {
		a.complete.WithLabelValues(kind...).Inc()
	}
	if oomKilled {
		a.oom.WithLabelValues(kind...).Inc()
	}
}
