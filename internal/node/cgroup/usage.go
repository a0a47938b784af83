package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage reads what the group used: a few small files, no process list. Errors: fs.ErrNotExist once it was removed.
func (g *Group) Usage() (Usage, error) {
	if _, err := os.Stat(g.dirs[0]); err != nil {
		return Usage{}, err
	}
	if g.version == V2 {
		return g.usageV2(), nil
	}
	return g.usageV1(), nil
}

func (g *Group) usageV2() Usage {
	dir := g.dirs[0]
	cpu, mem := readKeys(dir, "cpu.stat"), readKeys(dir, "memory.stat")
	u := Usage{
		CPUTotal: micro(cpu["usage_usec"]), CPUUser: micro(cpu["user_usec"]), CPUSystem: micro(cpu["system_usec"]),
		Throttled: uint64(cpu["nr_throttled"]), ThrottledTime: micro(cpu["throttled_usec"]),
		RSS: mem["anon"], Cache: mem["file"], MappedFile: mem["file_mapped"],
		MemoryRaw: intOr0(dir, "memory.current"), MemoryPeak: intOr0(dir, "memory.peak"),
		Swap: intOr0(dir, "memory.swap.current"), Pids: intOr0(dir, "pids.current"),
	}
	return u.WithoutCache(mem["shmem"])
}

func (g *Group) usageV1() Usage {
	cpu, acct := readKeys(g.byCtl["cpu"], "cpu.stat"), g.byCtl["cpuacct"]
	mem, memDir := readKeys(g.byCtl["memory"], "memory.stat"), g.byCtl["memory"]
	u := Usage{
		CPUTotal: time.Duration(intOr0(acct, "cpuacct.usage")), CPUUser: time.Duration(intOr0(acct, "cpuacct.usage_user")),
		CPUSystem: time.Duration(intOr0(acct, "cpuacct.usage_sys")),
		Throttled: uint64(cpu["nr_throttled"]), ThrottledTime: time.Duration(cpu["throttled_time"]),
		RSS: mem["total_rss"], Cache: mem["total_cache"], MappedFile: mem["total_mapped_file"], Swap: mem["total_swap"],
		MemoryRaw: intOr0(memDir, "memory.usage_in_bytes"), MemoryPeak: intOr0(memDir, "memory.max_usage_in_bytes"),
		Pids: intOr0(g.byCtl["pids"], "pids.current"),
	}
	return u.WithoutCache(mem["total_shmem"])
}

// WithoutCache sets Memory: without page cache, which the kernel gives up when memory is needed. What is in tmpfs is
// counted as cache too, and cannot be given up.
func (u Usage) WithoutCache(tmpfs int64) Usage {
	u.Memory = max(u.MemoryRaw-max(u.Cache-tmpfs, 0), 0)
	return u
}

// OOMKills counts the processes of the group and its children that the kernel killed for want of
// memory. For a child without a memory group of its own: those of the whole payload since it was made.
func (g *Group) OOMKills() uint64 {
	if g.version == V2 {
		return uint64(readKeys(g.dirs[0], "memory.events")["oom_kill"])
	}
	var total uint64 // v1 counts each group apart
	dir := g.byCtl["memory"]
	if dir == "" {
		if g.parent == nil {
			return 0
		}
		return g.parent.OOMKills() - g.oomBase
	}
	walk(dir, func(d string) { total += uint64(readKeys(d, "memory.oom_control")["oom_kill"]) })
	return total
}

// walk visits the group's directories, children before parents.
func walk(dir string, visit func(dir string)) {
	if childless(dir) {
		visit(dir)
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			walk(filepath.Join(dir, e.Name()), visit)
		}
	}
	visit(dir)
}

func readKeys(dir, file string) map[string]int64 {
	keys := map[string]int64{}
	if dir == "" {
		return keys
	}
	data, err := readFile(dir, file)
	if err != nil {
		return keys
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseInt(value, 10, 64); err == nil {
			keys[name] = v
		}
	}
	return keys
}

func intOr0(dir, file string) int64 {
	if dir == "" {
		return 0
	}
	v, err := readInt(dir, file)
	if err != nil {
		return 0
	}
	return v
}

func micro(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
