package initd

import (
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/node/supervisor/spawn"
)

func newCond(mu *sync.Mutex) *sync.Cond { return sync.NewCond(mu) }

const (
	defaultOpenFiles = 1024 // soft: programs that loop over all descriptors stay fast
	cpuCheck         = 20 * time.Millisecond
	tick             = 10 * time.Millisecond // of /proc/<pid>/stat
)

// rlimits turns limits into resource limits. Memory and processes are left to the control group where there is one.
func (x *execution) rlimits() []spawn.Rlimit {
	l := x.spec.Limits
	list := []spawn.Rlimit{openFiles(l.OpenFiles), {Resource: unix.RLIMIT_CORE}}
	if l.FileSizeMB > 0 {
		list = append(list, both(unix.RLIMIT_FSIZE, uint64(l.FileSizeMB)<<20))
	}
	if l.CPU > 0 { // of each process, in whole seconds; watchCPU is exact for the tree
		s := uint64((l.CPU + time.Second - 1) / time.Second)
		list = append(list, spawn.Rlimit{Resource: unix.RLIMIT_CPU, Cur: s + 1, Max: s + 2})
	}
	if len(x.tree.fds) == 0 {
		if l.MemoryMB > 0 { // data, not address space: runtimes reserve more than they use
			list = append(list, both(unix.RLIMIT_DATA, uint64(l.MemoryMB)<<20))
		}
		if l.Pids > 0 {
			list = append(list, both(unix.RLIMIT_NPROC, uint64(l.Pids)))
		}
	}
	return list
}

func both(resource int, v uint64) spawn.Rlimit {
	return spawn.Rlimit{Resource: resource, Cur: v, Max: v}
}

// openFiles undoes what the Go runtime did to our own soft limit.
func openFiles(n int) spawn.Rlimit {
	var own syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own)
	if n > 0 {
		v := min(uint64(n), own.Max)
		return both(unix.RLIMIT_NOFILE, v)
	}
	return spawn.Rlimit{Resource: unix.RLIMIT_NOFILE, Cur: min(defaultOpenFiles, own.Max), Max: own.Max}
}

// watch starts the timers of the limits. Caller holds mu.
func (x *execution) watch() {
	if d := x.spec.Limits.Wall; d > 0 {
		x.wallTimer = x.s.clock.AfterFunc(d, func() { x.kill(drover.CauseTimeout) })
	}
	if x.spec.Limits.CPU > 0 {
		x.cpuTimer = x.s.clock.AfterFunc(max(cpuCheck, x.spec.Limits.CPU/8), x.watchCPU)
	}
}

// watchCPU kills the tree when it has used up its cpu time, else looks again when it could have.
func (x *execution) watchCPU() {
	var used time.Duration
	for _, pid := range x.tree.running(x.s.reaper) {
		if p, ok := readProc(pid); ok {
			used += time.Duration(p.ticks) * tick
		}
	}
	left := x.spec.Limits.CPU - used
	if left <= 0 {
		x.kill(drover.CauseCPULimit)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.child.done:
	default:
		x.cpuTimer.Reset(max(cpuCheck, left/8))
	}
}
