package server

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

func newCond(mu *sync.Mutex) *sync.Cond { return sync.NewCond(mu) }

const (
	defaultOpenFiles = 1024 // soft: programs that loop over all descriptors stay fast
	cpuCheck         = 20 * time.Millisecond
	treeCheck        = 25 * time.Millisecond
	tick             = 10 * time.Millisecond // of /proc/<pid>/stat
)

// rlimits turns limits into resource limits. Memory and processes are left to the control group where there is one.
func (x *command) rlimits() []spawn.Rlimit {
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
		// Data, not address space: runtimes reserve more than they use. It bounds one process between two looks of
		// watchTree, which sees all of them.
		if l.MemoryMB > 0 {
			list = append(list, both(unix.RLIMIT_DATA, 2*uint64(l.MemoryMB)<<20))
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
	soft := uint64(defaultOpenFiles)
	if said, err := strconv.ParseUint(os.Getenv(wire.OpenFilesVariable), 10, 64); err == nil {
		soft = said
	}
	return spawn.Rlimit{Resource: unix.RLIMIT_NOFILE, Cur: min(soft, own.Max), Max: own.Max}
}

// watch starts the timers of the limits. Caller holds mu.
func (x *command) watch() {
	if d := x.spec.Limits.Wall; d > 0 {
		x.wallTimer = x.s.clock.AfterFunc(d, func() { x.kill(execution.CauseTimeout) })
	}
	if x.spec.Limits.CPU > 0 {
		x.cpuTimer = x.s.clock.AfterFunc(max(cpuCheck, x.spec.Limits.CPU/8), x.watchCPU)
	}
	if x.watched() {
		x.treeTimer = x.s.clock.AfterFunc(treeCheck, x.watchTree)
	}
}

// watched reports whether there are limits of the whole tree, and no control group to keep them.
func (x *command) watched() bool {
	return len(x.tree.fds) == 0 && (x.spec.Limits.MemoryMB > 0 || x.spec.Limits.Pids > 0)
}

// watchTree does what a control group would do: it kills a tree that has too much memory or too many processes.
func (x *command) watchTree() {
	begun := x.s.clock.Now()
	l := x.spec.Limits
	pids := x.tree.running(x.s.reaper)
	var memory int64
	for _, pid := range pids {
		memory += residentBytes(pid)
	}
	switch {
	case l.MemoryMB > 0 && memory > int64(l.MemoryMB)<<20:
		x.kill(execution.CauseOOM)
		return
	case l.Pids > 0 && len(pids) > l.Pids:
		x.fail(fmt.Sprintf("it had %d processes, its limit is %d", len(pids), l.Pids))
		x.kill(execution.CauseKilled)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.child.done:
	default:
		// On a machine with many processes a look costs milliseconds: it may take a twentieth of a core.
		x.treeTimer.Reset(max(treeCheck, 20*x.s.clock.Now().Sub(begun)))
	}
}

// fail notes why it is about to be killed.
func (x *command) fail(reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == "" {
		x.reason = reason
	}
}

// residentBytes is what a process has of its own in memory: pages that it shares with files are not counted.
func residentBytes(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	f := strings.Fields(string(b))
	if err != nil || len(f) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(f[1], 10, 64)
	shared, _ := strconv.ParseInt(f[2], 10, 64)
	return max(resident-shared, 0) * int64(os.Getpagesize())
}

// noteCPU notes what the tree has used: of children that nobody waits for the kernel tells their parents nothing.
func (x *command) noteCPU(used time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.usedCPU = max(x.usedCPU, used)
}

// watchCPU kills the tree when it has used up its cpu time, else looks again when it could have.
func (x *command) watchCPU() {
	gone := x.s.reaper.orphaned(x.child)
	used := gone.user + gone.system
	for _, pid := range x.tree.running(x.s.reaper) {
		if p, ok := readProc(pid); ok {
			used += time.Duration(p.ticks) * tick
		}
	}
	x.noteCPU(used)
	left := x.spec.Limits.CPU - used
	if left <= 0 {
		x.kill(execution.CauseCPULimit)
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
