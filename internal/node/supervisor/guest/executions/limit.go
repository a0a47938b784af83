package executions

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// The shortest pauses between two looks at a tree: at its cpu time, and at its memory and processes.
const (
	cpuCheck  = 20 * time.Millisecond
	treeCheck = 25 * time.Millisecond
)

// rlimits turns limits into resource limits. Memory and processes are left to the control group where there is one.
func (x *command) rlimits() []spawn.Rlimit {
	l := x.spec.Limits
	list := []spawn.Rlimit{program.OpenFiles(l.OpenFiles), {Resource: unix.RLIMIT_CORE}}
	if l.FileSizeMB > 0 {
		list = append(list, program.Rlimit(unix.RLIMIT_FSIZE, uint64(l.FileSizeMB)<<20))
	}
	if l.CPU > 0 { // of each process, in whole seconds; watchCPU is exact for the tree
		s := uint64((l.CPU + time.Second - 1) / time.Second)
		list = append(list, spawn.Rlimit{Resource: unix.RLIMIT_CPU, Cur: s + 1, Max: s + 2})
	}
	if !x.tree.Grouped() {
		// Data, not address space: runtimes reserve more than they use. It bounds one process between two looks of
		// watchTree, which sees all of them.
		if l.MemoryMB > 0 {
			list = append(list, program.Rlimit(unix.RLIMIT_DATA, 2*uint64(l.MemoryMB)<<20))
		}
		if l.Pids > 0 {
			list = append(list, program.Rlimit(unix.RLIMIT_NPROC, uint64(l.Pids)))
		}
	}
	return list
}

// watch starts the timers of the limits. Caller holds mu.
func (x *command) watch() {
	if d := x.spec.Limits.Wall; d > 0 {
		x.wallTimer = x.Clock.AfterFunc(d, func() { x.kill(execution.CauseTimeout) })
	}
	if x.spec.Limits.CPU > 0 {
		x.cpuTimer = x.Clock.AfterFunc(max(cpuCheck, x.spec.Limits.CPU/8), x.watchCPU)
	}
	if x.watched() {
		x.treeTimer = x.Clock.AfterFunc(treeCheck, x.watchTree)
	}
}

// watched reports whether there are limits of the whole tree, and no control group to keep them.
func (x *command) watched() bool {
	return !x.tree.Grouped() && (x.spec.Limits.MemoryMB > 0 || x.spec.Limits.Pids > 0)
}

// watchTree does what a control group would do: it kills a tree that has too much memory or too many processes.
func (x *command) watchTree() {
	begun := x.Clock.Now()
	l := x.spec.Limits
	pids := x.tree.Running(x.Reaper)
	var memory int64
	for _, pid := range pids {
		own, _ := process.PrivateBytes(pid)
		memory += own
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
	case <-x.child.Done:
	default:
		// On a machine with many processes a look costs milliseconds: it may take a twentieth of a core.
		x.treeTimer.Reset(max(treeCheck, 20*x.Clock.Now().Sub(begun)))
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

// noteCPU notes what the tree has used: of children that nobody waits for the kernel tells their parents nothing.
func (x *command) noteCPU(used time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.usedCPU = max(x.usedCPU, used)
}

// watchCPU kills the tree when it has used up its cpu time, else looks again when it could have.
func (x *command) watchCPU() {
	gone := x.Reaper.Orphaned(x.child)
	used := gone.User + gone.System
	for _, pid := range x.tree.Running(x.Reaper) {
		spent, _ := process.CPUTime(pid)
		used += spent
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
	case <-x.child.Done:
	default:
		// An eighth of what is left cannot be overrun by fewer than eight busy cores.
		x.cpuTimer.Reset(max(cpuCheck, left/8))
	}
}
