package server

import (
	"cmp"
	"context"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker"
	"github.com/drover-project/drover/internal/node/driver/fake"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/node/groupnet"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/node/stats"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/internal/version"
)

// node is the node agent of this process.
type node struct {
	agent   *agent.Agent
	remote  *link.Dialed // to servers in other processes; nil where there can be none
	images  *image.Store
	guard   *machine.Guard // nil without client.machine
	deps    Deps
	drivers map[string]driver.Driver // by name
	// closers are the drivers with something of their own, and the parents of control groups.
	closers []io.Closer
}

// openNode builds the agent. Control is called directly when it is in this process, else dialled.
func (a *Agent) openNode(ctx context.Context) (*node, error) {
	d := a.deps
	n := &node{deps: d}
	groups := a.cgroups()
	network := bridge.New(bridge.Config{Egress: egressPolicy(a.cfg.Client.Egress), Clock: d.Clock, Log: d.Log.With("part", "bridge")})
	drivers, err := n.openDrivers(a, network, groups)
	if err != nil {
		return nil, err
	}
	networks := a.networks(network, drivers)
	n.closeLater(drivers, networks, network)
	var sweeper agent.GroupSweeper
	if groups != nil {
		sweeper = groups
		n.closers = append(n.closers, closer(func() error { return groups.Close(d.Clock) }))
	}
	cfg, err := a.nodeConfig(groups)
	if err != nil {
		return nil, err
	}
	controller, err := a.controllerOf(n, cfg)
	if err != nil {
		return nil, err
	}
	tasks := a.metrics.Allocs()
	n.agent, err = agent.New(cfg, agent.Deps{
		Groups: sweeper, Networks: networks, Evaluator: a.texts.templates,
		Controller: controller, Drivers: drivers, Clock: d.Clock, IDs: d.IDs, Log: d.Log.With("part", "node"), Host: stats.New(d.Clock),
		Samples: tasks.Sample, Terminated: func(alloc *drover.Allocation, task string, exit driver.Exit) {
			tasks.Ended(alloc, task, exit.Code != 0 || exit.Signal != 0 || exit.Err != nil, exit.OOMKilled)
		},
	})
	if err != nil {
		return n, err
	}
	a.metrics.Source(telemetry.WorkMetrics(n.agent.Node, n.agent.Allocations))
	if optional.Value(a.cfg.Telemetry.NodeMetrics) {
		ctx := context.WithoutCancel(ctx)
		a.metrics.Source(telemetry.HostMetrics(n.agent.Node, func() (*drover.HostStats, error) { return n.agent.NodeStats(ctx) }))
	}
	return n, nil
}

// closeLater notes the drivers by name, and what is closed after the agent, in this order: the networks that groups
// share, the drivers, the bridge.
func (n *node) closeLater(drivers []driver.Driver, networks, network io.Closer) {
	n.closers = append(n.closers, networks)
	n.drivers = map[string]driver.Driver{}
	for _, d := range drivers {
		n.drivers[d.Name()] = d
		if c, ok := d.(io.Closer); ok {
			n.closers = append(n.closers, c)
		}
	}
	n.closers = append(n.closers, network)
}

// nodeConfig is what the configuration says of the node. Errors: Invalid.
func (a *Agent) nodeConfig(groups *cgroup.Manager) (agent.Config, error) {
	cfg := a.cfg.Client
	out := agent.Config{
		DataDir: a.dataDir, InMemory: a.forgetful(), SecretsInMemory: true, ShieldFolders: true, StopOnExit: a.cfg.Dev,
		Name: a.cfg.Name, Region: a.cfg.Region, Datacenter: a.cfg.Datacenter, NodePool: cfg.NodePool, NodeClass: cfg.NodeClass, Meta: cfg.Meta,
		MinDynamicPort: cfg.MinDynamicPort, MaxDynamicPort: cfg.MaxDynamicPort,
		HTTPAddr: a.advertised(), Version: version.Nomad, DroverVersion: version.Version,
		CPUMHz: int64(cfg.CPUTotal), MemoryMB: int64(cfg.MemoryTotalMB), DiskMB: int64(cfg.DiskTotalMB),
		MaxAllocs: cfg.NodeMaxAllocs, HostVolumes: hostVolumes(cfg),
		MaxKillTimeout: config.Duration(cfg.MaxKillTimeout, 0), SharedCores: groups == nil || !groups.Info().Has("cpuset"),
		GC: agent.GCConfig{
			MaxAllocs: cfg.GCMaxAllocs, DiskPercent: cfg.GCDiskUsage, InodePercent: cfg.GCInodeUsage,
			Interval: config.Duration(cfg.GCInterval, 0), MinAge: config.Duration(cfg.GCMinAge, 0), MaxAge: config.Duration(cfg.GCMaxAge, 0),
		},
		PublishAllocMetrics: optional.Value(a.cfg.Telemetry.AllocMetrics),
		CollectionInterval:  config.Duration(a.cfg.Telemetry.CollectionInterval, 0),
	}
	if cfg.Artifact != nil {
		var err error
		if out.ArtifactAllow, err = netguard.Networks(cfg.Artifact.Allow); err != nil {
			return out, drover.Errorf(drover.Invalid, "client.artifact.allow: %w", err)
		}
	}
	if r := cfg.Reserved; r != nil {
		out.Reserved = drover.Capacity{CPU: int64(r.CPU), MemoryMB: int64(r.MemoryMB), DiskMB: int64(r.DiskMB)}
		out.ReservedPorts = r.ReservedPorts
	}
	return out, nil
}

// controllerOf returns control as the node's agent calls it: in this process or over a link, behind the machine's guard
// if there is one.
func (a *Agent) controllerOf(n *node, cfg agent.Config) (exchange.Controller, error) {
	var controller exchange.Controller
	var err error
	switch {
	case a.control == nil:
		n.remote, err = a.dial(cfg, a.cfg.Client.ServerList(), a.keptServers())
		controller = n.remote
	case a.control.servers.Clustered():
		n.remote, err = a.dial(cfg, nil, "")
		controller = a.control.front
	default:
		controller = a.control.front
	}
	if err != nil {
		return nil, err
	}
	if n.guard = a.guard(n, controller); n.guard != nil {
		controller = n.guard
	}
	return controller, nil
}

// keptServers is where the node remembers which servers there are; "" if nothing is to outlive the process.
func (a *Agent) keptServers() string {
	if a.forgetful() {
		return ""
	}
	return filepath.Join(a.dataDir, "client", "servers.json")
}

// validateTask asks the task's driver about its configuration; asked is false if this process does not have it.
func (a *Agent) validateTask(t *drover.Task) (asked bool, err error) {
	if a.node == nil || a.node.drivers[t.Driver] == nil {
		return false, nil
	}
	return true, a.node.drivers[t.Driver].Validate(t)
}

// hostVolumes are the volumes of the configuration by their names, as the node reports them to control.
func hostVolumes(cfg *config.Client) map[string]*drover.HostVolumeInfo {
	out := map[string]*drover.HostVolumeInfo{}
	for _, v := range cfg.HostVolumes {
		out[v.Name] = &drover.HostVolumeInfo{Path: v.Path, ReadOnly: optional.Value(v.ReadOnly)}
	}
	return out
}

// openDrivers makes the drivers, and the store of the images that sandboxes have, some of which docker's daemon has.
func (n *node) openDrivers(a *Agent, network *bridge.Network, groups *cgroup.Manager) ([]driver.Driver, error) {
	binary, err := supervisor.Binary(a.dataDir)
	if err != nil {
		return nil, err
	}
	containers, err := a.docker(binary, network, groups)
	if err != nil {
		return nil, err
	}
	images := image.Options{
		Dir:   cmp.Or(a.cfg.Driver("sandbox").ImageDir, filepath.Join(a.dataDir, "images")),
		Clock: a.deps.Clock, Log: a.deps.Log.With("part", "image"),
	}
	if containers != nil {
		images.Local = containers
	}
	n.images = image.NewStore(images)
	drivers := a.drivers(binary, network, n.images, groups)
	if containers != nil {
		drivers = append(drivers, containers)
	}
	return drivers, nil
}

// drivers of this machine but docker's. The fake one is there for benchmarks and tests, when it is asked for.
func (a *Agent) drivers(binary string, network *bridge.Network, images *image.Store, groups *cgroup.Manager) []driver.Driver {
	d := a.deps
	coreMHz := fingerprint.CoreMHz()
	list := []driver.Driver{
		rawexec.New(rawexec.Config{
			Enabled: optional.Value(a.cfg.Driver("raw_exec").Enabled), Binary: binary, CoreMHz: coreMHz, Clock: d.Clock,
			Log: d.Log.With("part", "raw_exec"), Cgroups: groups, IdleDir: filepath.Join(a.dataDir, "supervisor", ".idle"),
		}),
	}
	if p := a.cfg.Driver("sandbox"); p.Enabled == nil || *p.Enabled {
		list = append(list, sandbox.New(sandbox.Config{
			Dir: filepath.Join(a.dataDir, "sandbox"), Binary: binary, Images: images, Cgroups: groups, Clock: d.Clock,
			Log: d.Log.With("part", "sandbox"), CoreMHz: int(coreMHz), AllowHostMounts: optional.Value(p.AllowHost),
			AllowHostNetwork: optional.Value(p.AllowHostNetwork), AllowCaps: p.AllowCaps, Bridge: network,
		}))
	}
	if optional.Value(a.cfg.Driver("mock_driver").Enabled) {
		list = append(list, fake.New(fake.Config{Name: "mock_driver", Clock: d.Clock}), fake.New(fake.Config{Name: "fake", Clock: d.Clock}))
	}
	return list
}

// docker is the driver of containers, nil if it is switched off. It says itself when there is no daemon.
func (a *Agent) docker(binary string, network *bridge.Network, groups *cgroup.Manager) (*docker.Driver, error) {
	p := a.cfg.Driver(docker.Name)
	if p.Enabled != nil && !*p.Enabled {
		return nil, nil // a valid answer
	}
	c := dockerConfig(p)
	c.Owner, c.Binary, c.Bridge, c.Cgroups, c.Clock = a.dataDir, binary, network, groups, a.deps.Clock
	c.Log, c.CoreMHz = a.deps.Log.With("part", docker.Name), int(fingerprint.CoreMHz())
	return docker.New(c)
}

// egressPolicy is what the configuration says, over the defaults. It was validated.
func egressPolicy(c *config.Egress) egress.Policy {
	p := egress.Default()
	if c == nil {
		return p
	}
	networks := func(to *[]netip.Prefix, list []string) {
		if list == nil {
			return
		}
		*to = nil
		for _, text := range list {
			*to = append(*to, netip.MustParsePrefix(text))
		}
	}
	networks(&p.Allow, c.Allow)
	networks(&p.AllowJobs, c.AllowJobs)
	for to, n := range map[*int]*int{&p.Connections: c.Connections, &p.ConnectionRate: c.ConnectionRate, &p.PacketRate: c.PacketRate} {
		if n != nil {
			*to = *n
		}
	}
	return p
}

// networks that groups share; those of an earlier agent are taken over.
func (a *Agent) networks(network *bridge.Network, drivers []driver.Driver) *groupnet.Networks {
	cfg := groupnet.Config{
		Dir: filepath.Join(a.dataDir, "netns"), Bridge: network, Clock: a.deps.Clock, Log: a.deps.Log.With("part", "groupnet"),
	}
	for _, d := range drivers {
		if h, ok := d.(groupnet.Holder); ok {
			cfg.Holder = h
		}
	}
	n := groupnet.New(cfg)
	if err := n.Restore(); err != nil {
		cfg.Log.Error("taking over the networks of groups", "error", err)
	}
	return n
}

// closer is a function that closes.
type closer func() error

// Close calls it.
func (c closer) Close() error { return c() }

// cgroups returns the manager of the tasks' cgroups; nil if the configuration or the kernel has none for us. An agent
// without root must still work, so that is a warning and no error.
func (a *Agent) cgroups() *cgroup.Manager {
	if optional.Value(a.cfg.Driver("raw_exec").NoCgroups) {
		return nil
	}
	m, err := cgroup.New(cgroup.Config{Parent: a.cfg.Client.CgroupParent})
	if err != nil {
		a.deps.Log.Warn("no cgroups: limits are weaker, and processes are found by descent", "error", err)
		return nil
	}
	return m
}

// parts are the loops of the node. There are tunnels only to control in other processes.
func (a *Agent) nodeParts() []lifecycle.Part {
	n := a.node
	parts := []lifecycle.Part{{Name: "node", Run: n.runAgent}, {Name: "images", Run: n.collectImages}}
	if n.guard != nil {
		parts = append(parts, lifecycle.Part{Name: "machine", Run: n.guard.Run})
	}
	switch {
	case n.remote == nil:
	case a.control != nil:
		parts = append(parts, lifecycle.Part{Name: "tunnels", Run: a.tunnels})
	default:
		parts = append(parts, lifecycle.Part{Name: "tunnels", Run: func(ctx context.Context) error { return n.remote.Run(ctx, n.agent) }})
	}
	return parts
}

// runAgent runs the agent, then removes what the drivers themselves have on the machine, as far as no task uses it that
// outlives this process.
func (n *node) runAgent(ctx context.Context) error {
	err := n.agent.Run(ctx)
	for _, c := range n.closers {
		if err := c.Close(); err != nil {
			n.deps.Log.Debug("leaving what is still in use", "error", err)
		}
	}
	return err
}

// collectImages removes, every hour, images that nothing has used for a day.
func (n *node) collectImages(ctx context.Context) error {
	for clock.Sleep(ctx, n.deps.Clock, time.Hour) {
		gone, err := n.images.Collect(ctx, 24*time.Hour)
		if err != nil {
			n.deps.Log.Warn("collecting images", "error", err)
		}
		if len(gone) > 0 {
			n.deps.Log.Info("removed unused images", "images", gone)
		}
	}
	return nil
}

// workloads finds a node's workloads: in this process, through the node's tunnel, or through another server. Errors: Unavailable
// for a server that is alone.
func (a *Agent) workloads(nodeID string) (exchange.Workloads, error) {
	w, err := a.reached(nodeID)
	if err != nil && a.control.servers.Clustered() {
		return a.control.front.Through(nodeID), nil
	}
	return w, err
}

// reached finds the workloads of a node that this process reaches itself. Errors: Unavailable.
func (a *Agent) reached(nodeID string) (exchange.Workloads, error) {
	if own := a.own(nodeID); own != nil {
		return own, nil
	}
	return a.remote.Workloads(nodeID)
}

// own returns the workloads of the node of this process, if that is the node, or nil.
func (a *Agent) own(nodeID string) exchange.Workloads {
	if a.node == nil || a.node.agent.NodeID() != nodeID {
		return nil
	}
	return a.node.agent
}
