package docker

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"drover"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver"
)

// noLimits: the container's own hold.
var noLimits cgroup.Limits //nolint:gochecknoglobals // a zero value

// meter keeps the last sample: percentages are of the time between two.
type meter struct {
	at   time.Time
	last cgroup.Usage
}

// Usage samples the container's cgroup files, which costs the daemon nothing. Page cache that can be dropped is not
// counted as use. Errors: ErrNotSupported when the container's group cannot be seen, ErrGone once it is no more.
func (h *handle) Usage(context.Context) (*drover.TaskResourceUsage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.destroyed {
		return nil, driver.ErrGone
	}
	group := h.box.group
	if group == nil {
		return nil, driver.ErrNotSupported
	}
	u, err := group.Usage()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, driver.ErrGone
	}
	if err != nil {
		return nil, err
	}
	now := h.d.cfg.Clock.Now()
	from, last := h.meter.at, h.meter.last
	if from.IsZero() {
		from = h.box.startedAt
	}
	h.meter = meter{now, u}
	elapsed := max(now.Sub(from), time.Millisecond)
	percent := func(used time.Duration) float64 { return 100 * float64(max(used, 0)) / float64(elapsed) }
	cpu := &drover.CpuStats{
		UserMode: percent(u.CPUUser - last.CPUUser), SystemMode: percent(u.CPUSystem - last.CPUSystem),
		Percent: percent(u.CPUTotal - last.CPUTotal), ThrottledPeriods: u.Throttled, ThrottledTime: uint64(u.ThrottledTime), //nolint:gosec // not negative
		Measured: []string{"System Mode", "User Mode", "Percent", "Throttled Periods", "Throttled Time"},
	}
	cpu.TotalTicks = cpu.Percent / 100 * float64(h.d.cfg.CoreMHz)
	return &drover.TaskResourceUsage{
		Timestamp:     now.UnixNano(),
		ResourceUsage: &drover.ResourceUsage{CpuStats: cpu, MemoryStats: memory(u), DeviceStats: []any{}},
		Pids:          map[string]*drover.ResourceUsage{},
	}, nil
}

func memory(u cgroup.Usage) *drover.MemoryStats {
	n := func(v int64) uint64 { return uint64(max(v, 0)) }
	return &drover.MemoryStats{
		RSS: n(u.RSS), Cache: n(u.Cache), Swap: n(u.Swap), MappedFile: n(u.MappedFile), Usage: n(u.Memory), MaxUsage: n(u.MemoryPeak),
		Measured: []string{"RSS", "Cache", "Swap", "Mapped File", "Usage", "Max Usage"},
	}
}
