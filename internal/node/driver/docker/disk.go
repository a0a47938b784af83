package docker

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/diskuse"
	"github.com/drover-project/drover/internal/node/driver/grouped"
)

// docker bounds what a container writes on few file systems only, so what it takes of the machine's disk is watched: its
// own layer, the daemon's files that are mounted into it, and its allocation's folder. A warm runner, whose code is
// unknown, is ended when it takes more than it may. Of a job's task it is told: Nomad ends none for that, and jobs that
// come from there rely on it.

// disk is a container's bound.
type disk struct {
	task   *diskuse.Watched // nil: nothing is watched
	reason atomic.Pointer[error]
}

// bound is what of a container's disk is kept for a later agent.
type bound struct {
	Alloc string `json:"alloc,omitempty"`
	Layer string `json:"layer,omitempty"` // "" = the daemon's storage driver has no folder of it
	// Files is the folder of what the daemon mounts into the container: /etc/hosts and its like, to which root in it writes.
	Files string `json:"files,omitempty"`
	// Root is where the container's root is seen, whose files have another device than those in Layer; "" = at its process.
	Root string `json:"root,omitempty"`
	MB   int64  `json:"mb,omitempty"`
	Ends bool   `json:"ends,omitempty"` // a runner that takes more
}

// watchDisk begins to watch.
func (h *handle) watchDisk(ctx context.Context) {
	limit := h.box.disk
	if limit.MB <= 0 {
		return
	}
	t := &diskuse.Watched{
		Dirs: []string{limit.Alloc}, MB: limit.MB, What: "its allocation's folder", By: fmt.Sprintf("ephemeral_disk has size = %d", limit.MB),
		Pids: grouped.Members(h.box.usage), Over: h.overDisk,
	}
	if limit.Layer != "" {
		t.Dirs, t.What = append(t.Dirs, limit.Layer), "its container's disk, with its allocation's folder,"
		t.Root = cmp.Or(limit.Root, filepath.Join("/proc", strconv.Itoa(h.Last().Pid()), "root"))
	} else {
		h.d.warnLayer.Do(func() {
			h.d.cfg.Log.Warn("what containers write to their own layers is not bounded: the daemon's storage driver has no folder of them")
		})
	}
	if limit.Files != "" {
		t.Dirs = append(t.Dirs, limit.Files)
	}
	if limit.Ends {
		t.By = fmt.Sprintf("an environment's diskMB, or ephemeral_disk, is %d", limit.MB)
	}
	h.disk.task = t
	h.d.disks.Add(ctx, t)
}

// overDisk ends a warm runner, and tells of a job's task.
func (h *handle) overDisk(_ context.Context, reason error) {
	if !h.box.disk.Ends {
		h.Tell(reason.Error() + "; the task goes on, as on Nomad")
		return
	}
	reason = drover.Errorf(drover.Exhausted, "killed: %w", reason)
	h.disk.reason.Store(&reason)
	if err := h.Last().Kill(); err != nil {
		h.d.cfg.Log.Error("a runner that took too much of the disk could not be killed", "container", h.box.id, "error", err)
	}
}

// unwatchDisk ends the watch, if there is one. It may be called more than once.
func (h *handle) unwatchDisk() {
	if h.disk.task != nil {
		h.d.disks.Remove(h.disk.task)
	}
}

// layerOf finds the folder in which the container's own layer lies; "" if there is none.
func (d *Driver) layerOf(ctx context.Context, id string, pid int) (layer string) {
	if dir := upperDir(fmt.Sprintf("/proc/%d/mountinfo", pid)); dir != "" {
		return dir
	}
	r, err := d.docker.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return ""
	}
	layer, _ = storedLayer(&r.Container)
	return layer
}

// filesOf finds the folder of what the daemon mounts into the container; "" if there is none of its own.
func (d *Driver) filesOf(ctx context.Context, id string) string {
	if info, err := d.daemon.get(ctx); err == nil && !d.cfg.Podman {
		if dir := filepath.Join(info.DockerRootDir, "containers", id); isFolder(dir) {
			return dir // which asks nobody
		}
	}
	r, err := d.docker.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return ""
	}
	// What a job mounts there itself has another path, which is no folder of the container's.
	if dir := filepath.Dir(r.Container.HostsPath); strings.Contains(dir, id) && isFolder(dir) {
		return dir
	}
	return ""
}

func isFolder(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}

// storedLayer is what the daemon says of it, and where the container's root is mounted.
func storedLayer(c *container.InspectResponse) (layer, root string) {
	if c.GraphDriver == nil {
		return "", ""
	}
	return c.GraphDriver.Data["UpperDir"], c.GraphDriver.Data["MergedDir"]
}

// upperDir reads where a process's root is written to, which asks nobody; "" if that is no overlay, or not said from the
// machine's root on.
func upperDir(mountinfo string) string {
	text, err := os.ReadFile(mountinfo)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		mount, super, _ := strings.Cut(line, " - ")
		f := strings.Fields(mount)
		if len(f) < 5 || f[4] != "/" || !strings.HasPrefix(super, "overlay ") {
			continue
		}
		_, rest, _ := strings.Cut(super, "upperdir=")
		dir, _, _ := strings.Cut(rest, ",")
		if dir = strings.TrimSpace(dir); filepath.IsAbs(dir) && !strings.Contains(dir, `\`) {
			return dir
		}
	}
	return ""
}
