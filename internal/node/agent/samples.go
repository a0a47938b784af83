package agent

import (
	"slices"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/usage"
)

// samples keeps the latest published sample of each task, with the time at which it was taken.
type samples struct {
	mu     sync.Mutex // guards latest
	latest map[string]*usage.TaskResourceUsage
}

// put replaces the task's sample.
func (s *samples) put(allocID, task string, u *usage.TaskResourceUsage) {
	s.mu.Lock()
	s.latest[allocID+"/"+task] = u
	s.mu.Unlock()
}

// get returns the task's last sample, nil if there is none yet. It must not be changed.
func (s *samples) get(allocID, task string) *usage.TaskResourceUsage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[allocID+"/"+task]
}

// drop forgets a task that has ended, so that nobody sees its last usage as its present one.
func (s *samples) drop(allocID, task string) {
	s.mu.Lock()
	delete(s.latest, allocID+"/"+task)
	s.mu.Unlock()
}

// publisher makes the stats hook of a task.
func (a *Agent) publisher(deps Deps) func(*drover.Allocation, string, driver.Meter) *hook.Stats {
	return func(alloc *drover.Allocation, task string, meter driver.Meter) *hook.Stats {
		return &hook.Stats{
			Meter: meter, Interval: a.cfg.CollectionInterval, Clock: a.clock, Log: a.log,
			Update: func(u *usage.TaskResourceUsage) {
				a.samples.put(alloc.ID, task, u)
				if deps.Samples != nil {
					deps.Samples(alloc, task, u)
				}
			},
		}
	}
}

// sum adds the tasks up; Timestamp is the newest.
func sum(out *usage.AllocResourceUsage) {
	memory, cpu, devices := &usage.MemoryStats{}, &usage.CpuStats{}, []*usage.DeviceGroupStats{}
	for _, t := range out.Tasks {
		out.Timestamp = max(out.Timestamp, t.Timestamp)
		if t.ResourceUsage == nil {
			continue
		}
		if m := t.ResourceUsage.MemoryStats; m != nil {
			memory.RSS += m.RSS
			memory.Cache += m.Cache
			memory.Swap += m.Swap
			memory.MappedFile += m.MappedFile
			memory.Usage += m.Usage
			memory.MaxUsage += m.MaxUsage
			memory.KernelUsage += m.KernelUsage
			memory.KernelMaxUsage += m.KernelMaxUsage
			memory.Measured = union(memory.Measured, m.Measured)
		}
		devices = append(devices, t.ResourceUsage.DeviceStats...)
		if c := t.ResourceUsage.CpuStats; c != nil {
			cpu.SystemMode += c.SystemMode
			cpu.UserMode += c.UserMode
			cpu.TotalTicks += c.TotalTicks
			cpu.ThrottledPeriods += c.ThrottledPeriods
			cpu.ThrottledTime += c.ThrottledTime
			cpu.Percent += c.Percent
			cpu.Measured = union(cpu.Measured, c.Measured)
		}
	}
	out.ResourceUsage = &usage.ResourceUsage{MemoryStats: memory, CpuStats: cpu, DeviceStats: devices}
}

// union appends to a the elements of b that it lacks, and keeps their order. The lists name at most a handful of
// measures.
func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
