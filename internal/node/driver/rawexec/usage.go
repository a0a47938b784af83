package rawexec

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/usage"
)

// clockTick is what times in /proc/<pid>/stat are counted in: USER_HZ, 100 a second on all architectures that we build for.
const clockTick = 10 * time.Millisecond

// Usage samples the task's control group, or the process tree below its supervisor. Errors: ErrGone.
func (h *handle) Usage(context.Context) (*usage.TaskResourceUsage, error) {
	if h.Ended() {
		return nil, driver.ErrGone
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	u, err := h.used()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, driver.ErrGone
	}
	if err != nil {
		return nil, err
	}
	h.meter.Started, h.meter.CoreMHz = h.startedAt, h.d.cfg.CoreMHz
	return h.meter.Sample(h.d.cfg.Clock.Now(), u), nil
}

// used reads what the task used up to now. Without control groups what ended without being waited for is not in it.
func (h *handle) used() (u cgroup.Usage, err error) {
	if h.group != nil {
		return h.group.Usage()
	}
	init := h.Last().Pid()
	if init == 0 {
		return u, driver.ErrNotSupported
	}
	for _, pid := range tree(init) {
		addProcess(&u, pid)
	}
	u.CPUTotal, u.Memory = u.CPUUser+u.CPUSystem, u.RSS
	return u, nil
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

// addProcess adds the process's cpu time, with that of the children it waited for, and its resident memory. One that has ended adds
// nothing.
func addProcess(u *cgroup.Usage, pid int) {
	f := statFields(pid)
	if f == nil {
		return
	}
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return time.Duration(n) * clockTick
	}
	// Fields 14 to 17 of proc(5): utime, stime, cutime, cstime; field 24 is rss in pages. The state, field 3, is f[0].
	u.CPUUser += ticks(11) + ticks(13)
	u.CPUSystem += ticks(12) + ticks(14)
	pages, _ := strconv.ParseInt(f[21], 10, 64)
	u.RSS += pages * int64(os.Getpagesize())
}
