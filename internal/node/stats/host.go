package stats

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/usage"
)

// minAge is how old a sample may be that answers a second question: cpu percentages over less mean nothing.
const minAge = time.Second

// Host samples this machine. CPU figures are those since the sample before; the first has those since boot.
type Host struct {
	clock  clock.Clock
	mhz    float64 // of one core
	proc   string
	mounts func() []mount

	mu   sync.Mutex // guards what follows
	last []cpuTimes
	kept *usage.HostStats
}

// New returns a sampler of this machine.
func New(c clock.Clock) *Host {
	h := &Host{clock: c, proc: "/proc"}
	h.mhz = coreMHz(h.read("cpuinfo"))
	h.mounts = func() []mount { return readMounts(h.read("mounts")) }
	return h
}

// read returns a file of /proc, empty if it cannot be read: what is missing shows as zero.
func (h *Host) read(name string) []byte {
	data, _ := os.ReadFile(h.proc + "/" + name)
	return data
}

// Host returns a sample; one younger than a second is given again, with its own time. allocDir is where allocations
// are.
func (h *Host) Host(allocDir string) (*usage.HostStats, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	if h.kept != nil { // its time is the wall clock's, which may have been set back
		if age := now.Sub(time.Unix(0, h.kept.Timestamp)); age >= 0 && age < minAge {
			return h.kept, nil
		}
	}
	times := parseCPU(h.read("stat"))
	if len(times) == 0 {
		return nil, drover.Errorf(drover.NotImplemented, "this machine has no %s/stat to measure by", h.proc)
	}
	s := &usage.HostStats{
		Timestamp: now.UnixNano(), Memory: memory(h.read("meminfo")), Uptime: uptime(h.read("uptime")), DeviceStats: []*usage.DeviceGroupStats{},
		CPU: h.cpu(times),
	}
	for _, c := range s.CPU {
		s.CPUTicksConsumed += c.TotalTicks
	}
	for _, m := range h.mounts() {
		if d := disk(m); d != nil {
			s.DiskStats = append(s.DiskStats, d)
		}
	}
	s.AllocDirStats = disk(mount{path: allocDir})
	h.last, h.kept = times, s
	return s, nil
}

// cpuTimes are jiffies of one core.
type cpuTimes struct {
	name                      string
	user, system, idle, total float64
}

// parseCPU reads /proc/stat: one entry a core, in its order. The line of all cores together is left out. For the columns
// see proc(5).
func parseCPU(data []byte) []cpuTimes {
	var out []cpuTimes
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 5 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		t := cpuTimes{name: f[0]}
		for i, text := range f[1:min(len(f), 9)] { // guest times are part of user
			n, _ := strconv.ParseFloat(text, 64)
			t.total += n
			switch i {
			case 0, 1:
				t.user += n
			case 2, 5, 6:
				t.system += n
			case 3, 4:
				t.idle += n
			}
		}
		out = append(out, t)
	}
	return out
}

// cpu makes percentages of the time since the last sample, by core. A core that was not there then counts from boot.
// Ticks are MHz in use, Nomad's unit. h.mu is held.
func (h *Host) cpu(times []cpuTimes) []*usage.HostCPUStats {
	out := make([]*usage.HostCPUStats, 0, len(times))
	for i, t := range times {
		var before cpuTimes
		if i < len(h.last) && h.last[i].name == t.name {
			before = h.last[i]
		}
		c := &usage.HostCPUStats{CPU: t.name, Idle: 100}
		if total := t.total - before.total; total > 0 {
			c.User = 100 * (t.user - before.user) / total
			c.System = 100 * (t.system - before.system) / total
			c.Idle = 100 * (t.idle - before.idle) / total
			c.TotalPercent = max(0, 100-c.Idle)
			c.TotalTicks = c.TotalPercent / 100 * h.mhz
		}
		out = append(out, c)
	}
	return out
}

// coreMHz is the fastest core's speed, 2000 where the machine does not say.
func coreMHz(cpuinfo []byte) float64 {
	fastest := 0.0
	for line := range bytes.Lines(cpuinfo) {
		key, value, _ := strings.Cut(string(line), ":")
		if strings.TrimSpace(key) == "cpu MHz" {
			f, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			fastest = max(fastest, f)
		}
	}
	if fastest < 1 {
		return 2000
	}
	return fastest
}

// memory reads /proc/meminfo, in bytes. Used is what new programs could not get: caches that can be freed are not in it.
func memory(data []byte) *usage.HostMemoryStats {
	kb := map[string]uint64{}
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		key, rest, _ := strings.Cut(s.Text(), ":")
		if f := strings.Fields(rest); len(f) > 0 {
			kb[key], _ = strconv.ParseUint(f[0], 10, 64)
		}
	}
	m := &usage.HostMemoryStats{Total: kb["MemTotal"] << 10, Available: kb["MemAvailable"] << 10, Free: kb["MemFree"] << 10}
	m.Used = m.Total - min(m.Total, m.Available)
	return m
}

// uptime returns the whole seconds since boot from /proc/uptime, 0 if it cannot be read.
func uptime(data []byte) uint64 {
	first, _, _ := strings.Cut(string(data), " ")
	f, _ := strconv.ParseFloat(first, 64)
	return uint64(max(f, 0))
}

// mount is a mounted device.
type mount struct{ device, path string }

// readMounts lists real devices, each once.
func readMounts(data []byte) []mount {
	var out []mount
	seen := map[string]bool{}
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 2 || !strings.HasPrefix(f[0], "/dev/") || seen[f[0]] {
			continue
		}
		seen[f[0]] = true
		out = append(out, mount{f[0], unescape(f[1])})
	}
	return out
}

// unescape undoes the octal of spaces and the like in /proc/mounts.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	if u, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`); err == nil {
		return u
	}
	return s
}

// disk returns the usage of a mounted file system in bytes, nil if it cannot be asked or has no size. As df does, the
// percentage leaves out what is kept for root.
func disk(m mount) *usage.HostDiskStats {
	var st unix.Statfs_t
	if unix.Statfs(m.path, &st) != nil || st.Blocks == 0 {
		return nil
	}
	size := uint64(st.Bsize)
	d := &usage.HostDiskStats{
		Device: m.device, Mountpoint: m.path, Size: st.Blocks * size, Available: st.Bavail * size,
		Used: (st.Blocks - st.Bfree) * size,
	}
	d.UsedPercent = percent(float64(d.Used), float64(d.Used+d.Available))
	d.InodesUsedPercent = percent(float64(st.Files-st.Ffree), float64(st.Files))
	return d
}

// percent is 0 of a whole that is 0: some file systems count no inodes.
func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}
