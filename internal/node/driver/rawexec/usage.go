package rawexec

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/internal/node/driver"
)

// sample is what a task used up to now.
type sample struct {
	user, system time.Duration
	rss, swap    int64
}

// meter keeps the last sample: percentages are of the time between two.
type meter struct {
	at   time.Time
	last sample
}

const clockTick = 10 * time.Millisecond

// Usage samples the task's control group, or the process tree below its supervisor. Errors: ErrGone.
func (h *handle) Usage(context.Context) (*drover.TaskResourceUsage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.destroyed || h.client == nil {
		return nil, driver.ErrGone
	}
	s, err := h.sample()
	if err != nil {
		return nil, err
	}
	now := h.d.cfg.Clock.Now()
	from, last := h.meter.at, h.meter.last
	if from.IsZero() {
		from = h.startedAt
	}
	h.meter = meter{now, s}
	elapsed := max(now.Sub(from), time.Millisecond)
	percent := func(used time.Duration) float64 { return 100 * float64(max(used, 0)) / float64(elapsed) }
	cpu := &drover.CpuStats{UserMode: percent(s.user - last.user), SystemMode: percent(s.system - last.system), Measured: []string{"System Mode", "User Mode", "Percent"}}
	cpu.Percent = cpu.UserMode + cpu.SystemMode
	cpu.TotalTicks = cpu.Percent / 100 * float64(h.d.cfg.CoreMHz)
	mem := &drover.MemoryStats{RSS: uint64(s.rss), Swap: uint64(s.swap), Measured: []string{"RSS", "Swap"}}
	return &drover.TaskResourceUsage{
		Timestamp:     now.UnixNano(),
		ResourceUsage: &drover.ResourceUsage{CpuStats: cpu, MemoryStats: mem, DeviceStats: []any{}},
		Pids:          map[string]*drover.ResourceUsage{},
	}, nil
}

func (h *handle) sample() (s sample, err error) {
	if h.group != nil {
		u, err := h.group.Usage()
		return sample{u.CPUUser, u.CPUSystem, u.RSS, u.Swap}, err
	}
	init := h.client.Pid()
	if init == 0 {
		return s, driver.ErrNotSupported
	}
	for _, pid := range tree(init) {
		addProcess(&s, pid)
	}
	return s, nil
}

// tree lists the processes below root. Their reaped children's time is in their own.
func tree(root int) []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	children := map[int][]int{}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if f := statFields(pid); f != nil {
			ppid, _ := strconv.Atoi(f[1])
			children[ppid] = append(children[ppid], pid)
		}
	}
	var all []int
	for queue := children[root]; len(queue) > 0; {
		pid := queue[0]
		queue = append(queue[1:], children[pid]...)
		all = append(all, pid)
	}
	return all
}

// statFields returns /proc/<pid>/stat from the state on; nil if the process ended.
func statFields(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 {
		return nil
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 22 {
		return nil
	}
	return f
}

func addProcess(s *sample, pid int) {
	f := statFields(pid)
	if f == nil {
		return
	}
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return time.Duration(n) * clockTick
	}
	s.user += ticks(11) + ticks(13)
	s.system += ticks(12) + ticks(14)
	pages, _ := strconv.ParseInt(f[21], 10, 64)
	s.rss += pages * int64(os.Getpagesize())
}
