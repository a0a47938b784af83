package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/network"
)

// box is what one sandbox consists of on the host.
type box struct {
	spec      *driver.Spec // nil after Attach
	config    taskConfig
	rootfs    *image.Rootfs
	slot      uint32
	slotTaken bool
	group     *cgroup.Group // nil = none
	user      supervisor.User
	env       map[string]string
	stateDir  string
	net       *bridging // nil unless it is on the bridge
	disk      diskLimit
	startedAt time.Time

	pid        int               // drover-init as the host sees it
	child      *supervisor.Child // nil after Attach
	dead       atomic.Bool
	startTicks uint64 // so that a pid which was given to another process is noticed
}

// stored is State.Data.
type stored struct {
	Pid        int                   `json:"pid"`
	StartTicks uint64                `json:"startTicks"`
	Slot       uint32                `json:"slot"`
	Group      string                `json:"cgroup,omitempty"`
	StateDir   string                `json:"stateDir"`
	Image      string                `json:"image"`
	Digest     string                `json:"digest,omitempty"`
	Warm       bool                  `json:"warm,omitempty"`
	OOMKills   uint64                `json:"oomKills,omitempty"`
	Address    string                `json:"address,omitempty"` // on the bridge
	IPv6       bool                  `json:"ipv6,omitempty"`    // it has one of IPv6 there, too
	Ports      []network.PortMapping `json:"ports,omitempty"`
	Disk       diskLimit             `json:"disk,omitzero"`
	Note       string                `json:"note,omitempty"` // of another driver
}

// state is what the agent stores for Attach; warm is whether there is no main task to wait for.
func (b *box) state(id, alloc, task string, warm bool) driver.State {
	s := stored{Pid: b.pid, StartTicks: b.startTicks, Slot: b.slot, StateDir: b.stateDir, Warm: warm, Disk: b.disk}
	if b.group != nil {
		s.Group = b.group.Name()
	}
	if b.net != nil {
		s.Address, s.IPv6, s.Ports = b.net.address.String(), b.net.shown.AddressIPv6 != "", b.net.ports
	}
	if b.rootfs != nil {
		s.Image, s.Digest = b.rootfs.Ref, b.rootfs.Digest
	}
	name := Name
	if t := b.config.task; t != nil {
		name, s.Note = t.Driver, t.Note
	}
	data, err := json.Marshal(s)
	if err != nil {
		data = nil // numbers and strings always marshal
	}
	return driver.State{Driver: name, ID: id, AllocID: alloc, TaskName: task, StartedAt: b.startedAt, Data: data}
}

// options of the client.
func (b *box) options(d *Driver) supervisor.Options {
	return supervisor.Options{Clock: d.cfg.Clock, Log: d.cfg.Log, Groups: b.groups(d)}
}

// groups are the control groups in which executions run. On v2 each execution's group belongs to the sandbox's root, and programs are
// born in it.
func (b *box) groups(d *Driver) *grouped.Groups {
	g := &grouped.Groups{Task: b.group, Clock: d.cfg.Clock}
	if b.group != nil && b.group.Version() == cgroup.V2 && !d.rootless {
		g.Clone, g.Owner = true, base(b.slot)
	}
	return g
}

// workDir is where commands start unless they say otherwise.
func (b *box) workDir() string {
	switch {
	case b.config.workDir != "":
		return b.config.workDir
	case b.rootfs.Ref == image.Host && !b.spec.Pool:
		return "/" // where local and alloc are, as in Nomad's exec driver
	case b.rootfs.Config.WorkDir != "":
		return b.rootfs.Config.WorkDir
	}
	return "/"
}

// processStart reads when a process was started, in the kernel's ticks; 0 if it is gone.
func processStart(pid int) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may contain anything; field 22 counts from the first.
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return 0
	}
	ticks, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}
