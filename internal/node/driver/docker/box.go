package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/network"
)

// box is what one task consists of on the machine.
type box struct {
	attached   bool   // drover-init is reached by the container's stdin and stdout
	id         string // of the container; "" = none was made
	image      string
	imageRef   string // as its Ref
	stopSignal string
	stateDir   string
	startedAt  time.Time
	warm       bool // no main task: only the supervisor runs
	disk       bound
	network    *network.Status
	link       *bridgeLink // nil unless it is on the bridge of sandboxes
	// groups are the control groups below the container's own, so that its limits and device rules hold for them too. Their Task is nil
	// until drover-init runs, and stays nil when the container's group cannot be used.
	groups *grouped.Groups
	usage  *cgroup.Group // the container's, to read; nil = it cannot be read
}

// stored is State.Data.
type stored struct {
	Container  string          `json:"container"`
	Image      string          `json:"image"`
	ImageRef   string          `json:"imageRef,omitempty"`
	StopSignal string          `json:"stopSignal,omitempty"`
	StateDir   string          `json:"stateDir"`
	Attached   bool            `json:"attached,omitempty"`
	Warm       bool            `json:"warm,omitempty"`
	Network    *network.Status `json:"network,omitempty"`
	Disk       bound           `json:"disk,omitzero"`
	Wire       storedLink      `json:"wire,omitzero"`
}

// state is what the agent stores for Attach, right after the start.
func (b *box) state(name string, spec *driver.Spec) driver.State {
	data, err := json.Marshal(
		stored{b.id, b.image, b.imageRef, b.stopSignal, b.stateDir, b.attached, b.warm, b.network, b.disk, b.link.stored()},
	)
	if err != nil {
		data = nil // such values always marshal
	}
	return driver.State{Driver: name, ID: spec.ID, AllocID: spec.AllocID, TaskName: spec.TaskName, StartedAt: b.startedAt, Data: data}
}

// initOOMScore: when the task's memory is used up, the kernel takes its programs (which are set back to 0), not us.
const initOOMScore = "-900"

// settle is the agent's part while drover-init waits for its configuration.
func (d *Driver) settle(b *box, pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(initOOMScore), 0); err != nil {
		d.cfg.Log.Debug("drover-init is not protected from memory kills", "container", b.id, "error", err)
	}
	return d.adopt(b, pid)
}

// noGroups are the groups of a container whose control group cannot be used: executions run in the container's own.
func (d *Driver) noGroups() *grouped.Groups { return &grouped.Groups{Clock: d.cfg.Clock} }

// adopt takes the container's cgroup for executions' groups to be made in.
func (d *Driver) adopt(b *box, pid int) error {
	if d.cfg.Cgroups == nil || pid <= 0 {
		return nil
	}
	// A container without groups of its own still runs: executions are then bounded by drover-init's watches only.
	group, err := d.cfg.Cgroups.Adopt(b.id, pid)
	if err != nil {
		d.cfg.Log.Warn("executions in this container have no groups of their own", "container", b.id, "error", err)
		return nil
	}
	b.groups.Task, b.usage = group, group
	return nil
}

// view takes the container's cgroup to read its usage from: what runs in it is a kernel of its own.
func (d *Driver) view(b *box, pid int) {
	if d.cfg.Cgroups == nil {
		return
	}
	group, err := d.cfg.Cgroups.View(b.id, pid)
	if err != nil {
		d.cfg.Log.Warn("the usage of this container is asked of the daemon", "container", b.id, "error", err)
		return
	}
	b.usage = group
}

// free gives back everything that the task holds on the machine. Idempotent.
func (d *Driver) free(ctx context.Context, b *box) error {
	// The container goes first: what follows is in use while it lives. An error keeps the rest for another call.
	if b.id != "" {
		if err := d.remove(ctx, b.id); err != nil {
			return err
		}
		d.forget(b.id)
	}
	if b.usage != nil {
		b.usage.Close()
	}
	if err := d.disconnectWire(ctx, b); err != nil {
		return err
	}
	if b.image != "" {
		d.images.Release(b.image) //nolint:contextcheck // the image goes later, by a timer
		b.image = ""
	}
	if b.stateDir == "" {
		return nil
	}
	return os.RemoveAll(b.stateDir)
}

// removePause is between two looks at a container that somebody else is removing.
const removePause = 20 * time.Millisecond

// remove kills and removes a container, and returns when it is gone.
func (d *Driver) remove(ctx context.Context, id string) error {
	for {
		_, err := d.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || cerrdefs.IsNotFound(err) {
			return nil
		}
		if !cerrdefs.IsConflict(err) && !ending(err) || !clock.Sleep(ctx, d.cfg.Clock, removePause) { // conflict: somebody removes it now
			return fmt.Errorf("removing the container: %w", dockererr.Of(errors.Join(err, ctx.Err())))
		}
	}
}

// ending reports whether podman cannot remove a container because it ends just now by itself: podman cannot end it any more then, and
// does not know yet that it has ended.
func ending(err error) bool { return strings.Contains(err.Error(), "container state improper") }
