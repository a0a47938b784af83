package host

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/internal/node/device"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker"
	"github.com/drover-project/drover/internal/node/driver/fake"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/node/groupnet"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/optional"
)

// Deps is what a Host needs of its process.
type Deps struct {
	DataDir string // the agent's
	Clock   clock.Clock
	Log     *slog.Logger
}

// Host is what tasks of this machine run with.
type Host struct {
	cfg      *config.Agent
	deps     Deps
	groups   *cgroup.Groups
	bridge   *bridge.Network
	images   *image.Store
	drivers  []driver.Driver
	networks *groupnet.Networks
	devices  *device.Devices
}

// Open makes the drivers and what they share. Networks of groups that an earlier agent left are taken over. Errors: those of the
// supervisor's file, and of docker's configuration.
func Open(cfg *config.Agent, deps Deps) (*Host, error) {
	h := &Host{cfg: cfg, deps: deps}
	h.groups = h.openGroups()
	subnet, _ := netip.ParsePrefix(cfg.Client.BridgeSubnet) // it was validated; without one the bridge has its default
	six, _ := netip.ParsePrefix(cfg.Client.BridgeSubnet6)   // likewise; without one it has none
	h.bridge = bridge.New(bridge.Config{
		Name: cfg.Client.BridgeName, Subnet: subnet, Subnet6: six, DNS: cfg.DNS.ServesBridge(), Egress: egressPolicy(cfg.Client.Egress),
		Clock: deps.Clock, Log: h.log("bridge"),
	})
	binary, err := supervisor.Binary(deps.DataDir)
	if err != nil {
		return nil, err
	}
	containers, err := h.docker(binary)
	if err != nil {
		return nil, err
	}
	images := image.Options{
		Dir:   cmp.Or(cfg.Driver("sandbox").ImageDir, filepath.Join(deps.DataDir, "images")),
		Clock: deps.Clock, Log: h.log("image"),
	}
	if containers != nil {
		images.Local = containers
	}
	h.images = image.NewStore(images)
	h.drivers = h.own(binary)
	if containers != nil {
		h.drivers = append(h.drivers, containers)
	}
	pods, err := h.podman(binary)
	if err != nil {
		return nil, err
	}
	if pods != nil {
		h.drivers = append(h.drivers, pods)
	}
	h.networks, h.devices = h.openNetworks(), h.openDevices()
	return h, nil
}

// Groups are the tasks' control groups; nil if there are none.
func (h *Host) Groups() *cgroup.Groups { return h.groups }

// Drivers are those of this machine.
func (h *Host) Drivers() []driver.Driver { return h.drivers }

// Bridge is the network of groups and runners.
func (h *Host) Bridge() *bridge.Network { return h.bridge }

// Networks are those that groups of tasks share.
func (h *Host) Networks() *groupnet.Networks { return h.networks }

// Devices are those of the machine that jobs may ask for.
func (h *Host) Devices() *device.Devices { return h.devices }

// SharedCores reports that no processors can be given to a task alone.
func (h *Host) SharedCores() bool { return h.groups == nil || !h.groups.Info().Has("cpuset") }

// Validate asks the task's driver about its configuration; asked is false if this machine does not have it.
func (h *Host) Validate(t *drover.Task) (asked bool, err error) {
	for _, d := range h.drivers {
		if d.Name() == t.Driver {
			return true, d.Validate(t)
		}
	}
	return false, nil
}

// Close removes what the drivers themselves have on the machine, unless a task uses it that outlives this process. These are
// the networks that groups share, the drivers' own, the bridge, and last the parents of control groups.
func (h *Host) Close() {
	closers := []io.Closer{h.networks}
	for _, d := range h.drivers {
		if c, ok := d.(io.Closer); ok {
			closers = append(closers, c)
		}
	}
	closers = append(closers, h.bridge)
	if h.groups != nil {
		closers = append(closers, closer(func() error { return h.groups.Close(h.deps.Clock) }))
	}
	for _, c := range closers {
		if err := c.Close(); err != nil {
			h.deps.Log.Debug("leaving what is still in use", "error", err)
		}
	}
}

// closer is a function that closes.
type closer func() error

// Close calls it.
func (c closer) Close() error { return c() }

// CollectImages removes, every hour, images that nothing has used for a day. It returns nil when ctx ends.
func (h *Host) CollectImages(ctx context.Context) error {
	for clock.Sleep(ctx, h.deps.Clock, time.Hour) {
		gone, err := h.images.Collect(ctx, 24*time.Hour)
		if err != nil {
			h.deps.Log.Warn("collecting images", "error", err)
		}
		if len(gone) > 0 {
			h.deps.Log.Info("removed unused images", "images", gone)
		}
	}
	return nil
}

// own are the drivers of this machine but docker's. The fake one is there for benchmarks and tests, when it is asked for.
func (h *Host) own(binary string) []driver.Driver {
	cfg, d, coreMHz := h.cfg, h.deps, fingerprint.CoreMHz()
	raw := cfg.Driver(rawexec.Name)
	list := []driver.Driver{
		rawexec.New(rawexec.Config{
			Enabled: optional.Value(raw.Enabled), DeniedUIDs: ids(raw.DeniedUIDs), DeniedGIDs: ids(raw.DeniedGIDs), DeniedEnv: raw.DeniedEnv,
			Binary: binary, CoreMHz: coreMHz, Clock: d.Clock, Log: h.log("raw_exec"), Cgroups: h.groups,
			IdleDir: filepath.Join(d.DataDir, "supervisor", ".idle"),
		}),
	}
	p := cfg.Driver(sandbox.Name)
	sandboxes := sandbox.New(sandbox.Config{
		Dir: filepath.Join(d.DataDir, "sandbox"), Binary: binary, Images: h.images, Cgroups: h.groups, Clock: d.Clock,
		Log: h.log("sandbox"), CoreMHz: int(coreMHz), AllowHostMounts: optional.Value(p.AllowHost),
		AllowHostNetwork: optional.Value(p.AllowHostNetwork), AllowCaps: p.AllowCaps, Bridge: h.bridge,
	})
	if p.Enabled == nil || *p.Enabled {
		list = append(list, sandboxes)
	}
	list = append(list, h.chroots(sandboxes)...)
	if optional.Value(cfg.Driver("mock_driver").Enabled) {
		list = append(list, fake.New(fake.Config{Name: "mock_driver", Clock: d.Clock}), fake.New(fake.Config{Name: "fake", Clock: d.Clock}))
	}
	return list
}

// docker is the driver of containers, nil if it is switched off. It says itself when there is no daemon.
func (h *Host) docker(binary string) (*docker.Driver, error) {
	p := h.cfg.Driver(docker.Name)
	if p.Enabled != nil && !*p.Enabled {
		return nil, nil // a valid answer
	}
	return h.containers(docker.Name, dockerConfig(p), binary)
}

// podman is docker's driver at podman's socket; nil unless that is configured.
func (h *Host) podman(binary string) (*docker.Driver, error) {
	p := h.cfg.Driver(docker.Podman)
	if p.Enabled != nil && !*p.Enabled || p.Enabled == nil && p.SocketPath == "" {
		return nil, nil // a valid answer
	}
	c := dockerConfig(p)
	c.Podman, c.Endpoint = true, cmp.Or(p.Socket(), docker.PodmanSocket)
	return h.containers(docker.Podman, c, binary)
}

func (h *Host) containers(name string, c docker.Config, binary string) (*docker.Driver, error) {
	c.Owner, c.Binary, c.Bridge, c.Cgroups, c.Clock = h.deps.DataDir, binary, h.bridge, h.groups, h.deps.Clock
	c.Log, c.CoreMHz = h.log(name), int(fingerprint.CoreMHz())
	return docker.New(c)
}

// openNetworks makes the networks that groups share; those of an earlier agent are taken over.
func (h *Host) openNetworks() *groupnet.Networks {
	cfg := groupnet.Config{
		Dir: filepath.Join(h.deps.DataDir, "netns"), Bridge: h.bridge, Clock: h.deps.Clock, Log: h.log("groupnet"),
		CNI: cni.New(cni.Config{
			Path: filepath.SplitList(h.cfg.Client.CNIPath), ConfigDir: h.cfg.Client.CNIConfigDir,
			CacheDir: filepath.Join(h.deps.DataDir, "cni"), Clock: h.deps.Clock, Log: h.log("cni"),
		}),
	}
	for _, d := range h.drivers {
		if holder, ok := d.(groupnet.Holder); ok && d.Name() == docker.Name { // podman's containers join what is there
			cfg.Holder = holder
		}
	}
	n := groupnet.New(cfg)
	if err := n.Restore(); err != nil {
		cfg.Log.Error("taking over the networks of groups", "error", err)
	}
	return n
}

// openGroups returns the manager of the tasks' control groups; nil if the configuration or the kernel has none for us. An agent
// without root must still work, so that is a warning and no error.
func (h *Host) openGroups() *cgroup.Groups {
	if optional.Value(h.cfg.Driver("raw_exec").NoCgroups) {
		return nil
	}
	m, err := cgroup.New(cgroup.Config{Parent: h.cfg.Client.CgroupParent})
	if err != nil {
		h.deps.Log.Warn("no cgroups: limits are weaker, and processes are found by descent", "error", err)
		return nil
	}
	return m
}

// log is that of a part.
func (h *Host) log(part string) *slog.Logger { return h.deps.Log.With("part", part) }
