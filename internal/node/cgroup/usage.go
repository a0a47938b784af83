package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Usage reads what the group used: six small files or fewer, no process list. A group that is sampled again and again
// keeps them open until Close. Errors: fs.ErrNotExist once it was removed.
func (g *Group) Usage() (u Usage, err error) {
	r := g.stats.reader()
	defer r.done()
	if g.version == V2 {
		u = g.usageV2(r)
	} else {
		u = g.usageV1(r)
	}
	if r.found {
		return u, nil
	}
	if _, err := os.Stat(g.dirs[0]); err != nil {
		return Usage{}, &fs.PathError{Op: "read", Path: g.dirs[0], Err: fs.ErrNotExist}
	}
	return u, nil // it is there, in trees that have no statistics: an execution's on v1
}

// Close lets go of what Usage keeps; it may be used again.
func (g *Group) Close() { g.stats.close() }

// usageV2 reads the unified group. memory.peak is there since Linux 5.19, and zero before.
func (g *Group) usageV2(r *statReader) (u Usage) {
	dir := g.dirs[0]
	r.lines(dir, "cpu.stat", func(key []byte, v int64) {
		switch string(key) {
		case "usage_usec":
			u.CPUTotal = micro(v)
		case "user_usec":
			u.CPUUser = micro(v)
		case "system_usec":
			u.CPUSystem = micro(v)
		case "nr_throttled":
			u.Throttled = uint64(v)
		case "throttled_usec":
			u.ThrottledTime = micro(v)
		}
	})
	tmpfs := u.readMemory(r, dir, memoryKeys{rss: "anon", cache: "file", mapped: "file_mapped", tmpfs: "shmem"})
	u.MemoryRaw, u.MemoryPeak, u.Swap = r.number(dir, "memory.current"), r.number(dir, "memory.peak"), r.number(dir, "memory.swap.current")
	return u.WithoutCache(tmpfs)
}

// usageV1 reads the files of three controllers. Memory is counted with the groups below ("total_…"), where executions
// run.
func (g *Group) usageV1(r *statReader) (u Usage) {
	cpu, acct, memory := g.byCtl["cpu"], g.byCtl["cpuacct"], g.byCtl["memory"]
	if r.limited(cpu) {
		r.lines(cpu, "cpu.stat", func(key []byte, v int64) {
			switch string(key) {
			case "nr_throttled":
				u.Throttled = uint64(v)
			case "throttled_time":
				u.ThrottledTime = time.Duration(v)
			}
		})
	}
	u.CPUUser, u.CPUSystem = time.Duration(r.number(acct, "cpuacct.usage_user")), time.Duration(r.number(acct, "cpuacct.usage_sys"))
	u.CPUTotal = u.CPUUser + u.CPUSystem // as the kernel makes cpuacct.usage
	tmpfs := u.readMemory(r, memory, memoryKeys{
		rss: "total_rss", cache: "total_cache", mapped: "total_mapped_file", tmpfs: "total_shmem", swap: "total_swap",
	})
	u.MemoryRaw, u.MemoryPeak = r.number(memory, "memory.usage_in_bytes"), r.number(memory, "memory.max_usage_in_bytes")
	return u.WithoutCache(tmpfs)
}

// memoryKeys are the names that a version of cgroups has in memory.stat; "" stands for one that it does not have there.
type memoryKeys struct{ rss, cache, mapped, tmpfs, swap string }

// readMemory reads memory.stat and returns the bytes in tmpfs.
func (u *Usage) readMemory(r *statReader, dir string, keys memoryKeys) (tmpfs int64) {
	r.lines(dir, "memory.stat", func(key []byte, v int64) {
		switch string(key) {
		case keys.rss:
			u.RSS = v
		case keys.cache:
			u.Cache = v
		case keys.mapped:
			u.MappedFile = v
		case keys.tmpfs:
			tmpfs = v
		case keys.swap:
			u.Swap = v
		}
	})
	return tmpfs
}

// WithoutCache sets Memory: without page cache, which the kernel gives up when memory is needed. What is in tmpfs is
// counted as cache too, and cannot be given up.
func (u Usage) WithoutCache(tmpfs int64) Usage {
	u.Memory = max(u.MemoryRaw-max(u.Cache-tmpfs, 0), 0)
	return u
}

// OOMKills counts the processes of the group and its children that the kernel killed for want of memory. For a child
// without a memory group of its own: those in the payload's, where there were none when it was made.
func (g *Group) OOMKills() uint64 {
	if g.version == V2 {
		return counter(g.dirs[0], "memory.events", "oom_kill")
	}
	dir := g.byCtl["memory"]
	switch {
	case dir == "" && g.parent != nil:
		return g.parent.ownOOMKills()
	case dir == "":
		return 0
	case childless(dir):
		return g.ownOOMKills()
	}
	var total uint64 // v1 counts each group apart
	walk(dir, func(d string) { total += counter(d, "memory.oom_control", "oom_kill") })
	return total
}

// ownOOMKills is OOMKills on v1, without those in groups below. Each execution asks: the file is worth keeping open.
func (g *Group) ownOOMKills() (n uint64) {
	if g.byCtl["memory"] == "" {
		return 0
	}
	r := g.stats.reader()
	defer r.done()
	r.lines(g.byCtl["memory"], "memory.oom_control", func(key []byte, v int64) {
		if string(key) == "oom_kill" {
			n = uint64(v) // a count
		}
	})
	return n
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

// micro is v2's unit of time; v1 has nanoseconds.
func micro(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
