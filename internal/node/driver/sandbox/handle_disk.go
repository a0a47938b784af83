package sandbox

import (
	"context"
	"sync/atomic"
	"time"

	"drover/internal/node/cgroup"
	"drover/internal/node/driver"
)

// disk is a task's bound on its allocation's folder.
type disk struct {
	watch  *diskWatch
	task   *watched // nil: nothing is watched
	reason atomic.Pointer[error]
}

// overDiskPatience bounds how long a task that wrote too much is waited for.
const overDiskPatience = 5 * time.Second

// watchDisk begins to watch a task that writes to the machine's disk. A warm runner writes to its own file system.
func (h *handle) watchDisk(ctx context.Context) {
	h.disk.watch = &h.d.disks
	if h.Warm() || h.box.disk.MB <= 0 || h.box.disk.Dir == "" {
		return
	}
	h.disk.task = &watched{limit: h.box.disk, pids: members(h.box.group), kill: h.killForDisk}
	h.disk.watch.add(ctx, h.disk.task)
}

func (h *handle) killForDisk(ctx context.Context, reason error) {
	h.disk.reason.Store(&reason)
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, overDiskPatience)
	defer cancel()
	if err := h.Task.Signal(ctx, "KILL"); err != nil { // what does not answer is ended from outside
		_ = h.d.kill(ctx, h.box)
	}
}

func (d *disk) end() {
	if d.task != nil {
		d.watch.remove(d.task)
	}
}

// members lists a group's processes, of a group that may be removed meanwhile.
func members(group *cgroup.Group) func() []int {
	return func() []int {
		if group == nil {
			return nil
		}
		pids, err := group.Procs()
		if err != nil {
			return nil
		}
		return pids
	}
}

// Wait returns when the task ended, and says so when that was for its disk.
func (h *handle) Wait(ctx context.Context) (driver.Exit, error) {
	exit, err := h.Task.Wait(ctx)
	if err != nil {
		return exit, err
	}
	h.disk.end()
	if reason := h.disk.reason.Load(); reason != nil && exit.Code != 0 {
		exit.Err = *reason
	}
	return exit, nil
}
