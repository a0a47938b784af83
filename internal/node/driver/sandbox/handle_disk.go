package sandbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/diskuse"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
)

// diskLimit is what an allocation's folder may take.
type diskLimit struct {
	Dir string `json:"dir"`
	MB  int64  `json:"mb"`
}

// disk is a task's bound on its allocation's folder, which lies on the machine's file system.
type disk struct {
	watch  *diskuse.Watch
	task   *diskuse.Watched // nil: nothing is watched
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
	h.disk.task = &diskuse.Watched{
		Dirs: []string{h.box.disk.Dir}, MB: h.box.disk.MB, What: "its allocation's folder",
		By: fmt.Sprintf("ephemeral_disk has size = %d", h.box.disk.MB), Pids: grouped.Members(h.box.group), Over: h.killForDisk,
	}
	h.disk.watch.Add(ctx, h.disk.task)
}

// killForDisk notes the reason first, so that whoever waits for the exit reads it there.
func (h *handle) killForDisk(ctx context.Context, reason error) {
	reason = drover.Errorf(drover.Exhausted, "killed: %w", reason)
	h.disk.reason.Store(&reason)
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, overDiskPatience)
	defer cancel()
	if err := h.Task.Signal(ctx, "KILL"); err != nil { // what does not answer is ended from outside
		_ = h.d.kill(ctx, h.box)
	}
}

// end ends the watch, if there is one. It may be called more than once.
func (d *disk) end() {
	if d.task != nil {
		d.watch.Remove(d.task)
	}
}

// Wait returns when the task ended, and says so when that was for its disk.
func (h *handle) Wait(ctx context.Context) (driver.Exit, error) {
	exit, err := h.Task.Wait(ctx)
	if err != nil {
		return exit, err
	}
	h.disk.end()
	// A task that ended well before the kill reached it keeps its exit.
	if reason := h.disk.reason.Load(); reason != nil && exit.Code != 0 {
		exit.Err = *reason
	}
	return exit, nil
}
