package server

import (
	"context"
	"io"
	"path/filepath"
	"sync"
	"time"

	"drover"
	"drover/internal/clock"
	"drover/internal/config"
	"drover/internal/lifecycle"
	"drover/internal/link"
	"drover/internal/node/agent"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver"
	"drover/internal/node/driver/docker"
	"drover/internal/node/driver/fake"
	"drover/internal/node/driver/rawexec"
	"drover/internal/node/driver/sandbox"
	"drover/internal/node/driver/sandbox/bridge"
	"drover/internal/node/fingerprint"
	"drover/internal/node/groupnet"
	"drover/internal/node/image"
	"drover/internal/node/machine"
	"drover/internal/node/stats"
	"drover/internal/node/supervisor"
	"drover/internal/telemetry"
	"drover/internal/version"
)

// node is the node agent of this process.
type node struct {
	agent   *agent.Agent
	remote  *link.Control // nil when control is in this process
	open    chan struct{} // closed once the first tunnel stands
	images  *image.Store
	guard   *machine.Guard // nil without client.machine
	deps    Deps
	drivers map[string]driver.Driver // by name
	// closers are the drivers with something of their own, and the parents of control groups.
	closers []io.Closer
}

// openNode builds the agent. Control is called directly when it is in this process, else dialled.
func (a *Agent) openNode(ctx context.Context) (*node, error) {
	cfg, d := a.cfg.Client, a.deps
	n := &node{deps: d}
	n.images = image.NewStore(image.Options{Dir: filepath.Join(a.dataDir, "images"), Clock: d.Clock, Log: d.Log.With("part", "image")})
	groups := a.cgroups()
	network := bridge.New(bridge.Config{Clock: d.Clock, Log: d.Log.With("part", "bridge")})
	drivers, err := a.drivers(network, n.images, groups)
	if err != nil {
		return nil, err
	}
	networks := a.networks(network, drivers)
	n.closers = append(n.closers, networks)
	n.drivers = map[string]driver.Driver{}
	for _, d := range drivers {
		n.drivers[d.Name()] = d
		if c, ok := d.(io.Closer); ok {
			n.closers = append(n.closers, c)
		}
	}
	n.closers = append(n.closers, network)
	if groups != nil {
		n.closers = append(n.closers, closer(func() error { return groups.Close(a.deps.Clock) }))
	}
	nodeCfg := agent.Config{
		DataDir: a.dataDir, InMemory: a.forgetful(), SecretsInMemory: true, StopOnExit: a.cfg.Dev, Name: a.cfg.Name, Region: a.cfg.Region,
		Datacenter: a.cfg.Datacenter, NodePool: cfg.NodePool, NodeClass: cfg.NodeClass, Meta: cfg.Meta,
		MinDynamicPort: cfg.MinDynamicPort, MaxDynamicPort: cfg.MaxDynamicPort,
		HTTPAddr: a.advertised(), Version: version.Nomad, DroverVersion: version.Version, CPUMHz: int64(cfg.CPUTotal), MemoryMB: int64(cfg.MemoryTotalMB),
		DiskMB: int64(cfg.DiskTotalMB), MaxAllocs: cfg.NodeMaxAllocs, HostVolumes: hostVolumes(cfg),
		MaxKillTimeout: config.Duration(cfg.MaxKillTimeout, 0), SharedCores: groups == nil || !groups.Info().Has("cpuset"),
		GC: agent.GCConfig{
			MaxAllocs: cfg.GCMaxAllocs, DiskPercent: cfg.GCDiskUsage, InodePercent: cfg.GCInodeUsage,
			Interval: config.Duration(cfg.GCInterval, 0), MinAge: config.Duration(cfg.GCMinAge, 0), MaxAge: config.Duration(cfg.GCMaxAge, 0),
		},
		PublishAllocMetrics: config.True(a.cfg.Telemetry.AllocMetrics),
		CollectionInterval:  config.Duration(a.cfg.Telemetry.CollectionInterval, 0),
	}
	if r := cfg.Reserved; r != nil {
		nodeCfg.Reserved = drover.Capacity{CPU: int64(r.CPU), MemoryMB: int64(r.MemoryMB), DiskMB: int64(r.DiskMB)}
		nodeCfg.ReservedPorts = r.ReservedPorts
	}
	var controller drover.Controller
	if a.control != nil {
		controller = a.control.assignment
	} else {
		identity, err := agent.ReadIdentity(nodeCfg, d.IDs)
		if err != nil {
			return nil, err
		}
		secure, err := tlsFor(a.cfg.TLS, "rpc")
		if err != nil {
			return nil, err
		}
		scheme := "http://"
		if secure != nil {
			scheme = "https://"
		}
		n.remote = link.NewControl(link.NewHTTPClient(secure), scheme+cfg.ServerList()[0], link.Identity{NodeID: identity.ID, Secret: identity.Secret, JoinToken: cfg.JoinToken})
		n.open = make(chan struct{})
		controller = tunnelled{n.remote, n.open}
	}
	if n.guard = a.guard(n, controller); n.guard != nil {
		controller = n.guard
	}
	tasks := a.metrics.Allocs()
	var sweeper agent.GroupSweeper
	if groups != nil {
		sweeper = groups
	}
	n.agent, err = agent.New(nodeCfg, agent.Deps{
		Groups: sweeper, Networks: networks,
		Controller: controller, Drivers: drivers, Clock: d.Clock, IDs: d.IDs, Log: d.Log.With("part", "node"), Host: stats.New(d.Clock),
		Samples: tasks.Sample, Terminated: func(alloc *drover.Allocation, task string, exit driver.Exit) {
			tasks.Ended(alloc, task, exit.Code != 0 || exit.Signal != 0 || exit.Err != nil, exit.OOMKilled)
		},
	})
	if err != nil {
		return n, err
	}
	a.metrics.Source(telemetry.WorkMetrics(n.agent.Node, n.agent.Allocations))
	if config.True(a.cfg.Telemetry.NodeMetrics) {
		a.metrics.Source(telemetry.HostMetrics(n.agent.Node, func() (*drover.HostStats, error) { return n.agent.NodeStats(context.WithoutCancel(ctx)) }))
	}
	return n, nil
}

// validateTask asks the task's driver about its configuration; asked is false if this process does not have it.
func (a *Agent) validateTask(t *drover.Task) (asked bool, err error) {
	if a.node == nil || a.node.drivers[t.Driver] == nil {
		return false, nil
	}
	return true, a.node.drivers[t.Driver].Validate(t)
}

func hostVolumes(cfg *config.Client) map[string]*drover.HostVolumeInfo {
	out := map[string]*drover.HostVolumeInfo{}
	for _, v := range cfg.HostVolumes {
		out[v.Name] = &drover.HostVolumeInfo{Path: v.Path, ReadOnly: config.True(v.ReadOnly)}
	}
	return out
}

// drivers of this machine. The fake one is there for benchmarks and tests, when it is asked for.
func (a *Agent) drivers(network *bridge.Network, images *image.Store, groups *cgroup.Manager) ([]driver.Driver, error) {
	d := a.deps
	binary, err := supervisor.Binary(a.dataDir)
	if err != nil {
		return nil, err
	}
	coreMHz := fingerprint.CoreMHz()
	list := []driver.Driver{
		rawexec.New(rawexec.Config{Enabled: config.True(a.cfg.Driver("raw_exec").Enabled), Binary: binary, CoreMHz: coreMHz, Clock: d.Clock, Log: d.Log.With("part", "raw_exec"), Cgroups: groups, IdleDir: filepath.Join(a.dataDir, "supervisor", ".idle")}),
	}
	if p := a.cfg.Driver("sandbox"); p.Enabled == nil || *p.Enabled {
		list = append(list, sandbox.New(sandbox.Config{
			Dir: filepath.Join(a.dataDir, "sandbox"), Binary: binary, Images: images, Cgroups: groups, Clock: d.Clock,
			Log: d.Log.With("part", "sandbox"), CoreMHz: int(coreMHz), AllowHostMounts: config.True(p.AllowHost), Bridge: network,
		}))
	}
	if p := a.cfg.Driver(docker.Name); p.Enabled == nil || *p.Enabled { // it says itself when there is no daemon
		c := dockerConfig(p)
		c.Owner, c.Binary, c.Cgroups, c.Clock, c.Log, c.CoreMHz = a.dataDir, binary, groups, d.Clock, d.Log.With("part", docker.Name), int(coreMHz)
		one, err := docker.New(c)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	if config.True(a.cfg.Driver("mock_driver").Enabled) {
		list = append(list, fake.New(fake.Config{Name: "mock_driver", Clock: d.Clock}), fake.New(fake.Config{Name: "fake", Clock: d.Clock}))
	}
	return list, nil
}

// networks that groups share; those of an earlier agent are taken over.
func (a *Agent) networks(network *bridge.Network, drivers []driver.Driver) *groupnet.Networks {
	cfg := groupnet.Config{Dir: filepath.Join(a.dataDir, "netns"), Bridge: network, Clock: a.deps.Clock, Log: a.deps.Log.With("part", "groupnet")}
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

func (a *Agent) cgroups() *cgroup.Manager {
	if config.True(a.cfg.Driver("raw_exec").NoCgroups) {
		return nil
	}
	m, err := cgroup.New(cgroup.Config{Parent: a.cfg.Client.CgroupParent})
	if err != nil {
		a.deps.Log.Warn("no cgroups: limits are weaker, and processes are found by descent", "error", err)
		return nil
	}
	return m
}

func (n *node) parts() []lifecycle.Part {
	parts := []lifecycle.Part{{Name: "node", Run: n.runAgent}, {Name: "images", Run: n.collectImages}}
	if n.guard != nil {
		parts = append(parts, lifecycle.Part{Name: "machine", Run: n.guard.Run})
	}
	if n.remote != nil {
		parts = append(parts, lifecycle.Part{Name: "tunnel", Run: n.keepTunnel})
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

// tunnelled registers the node only once control can reach it: from then on it gets work, and is asked about it.
type tunnelled struct {
	*link.Control
	open <-chan struct{}
}

// Register implements drover.Controller.
func (t tunnelled) Register(ctx context.Context, n *drover.Node) (drover.Registration, error) {
	select {
	case <-t.open:
		return t.Control.Register(ctx, n)
	case <-ctx.Done():
		return drover.Registration{}, ctx.Err()
	}
}

// keepTunnel keeps the connection through which control reaches this node's workloads.
func (n *node) keepTunnel(ctx context.Context) error {
	const least, most = 100, 2000 // ms between attempts; less than work on its runners waits for it (exec/runner)
	wait := least
	opened := sync.OnceFunc(func() { close(n.open) })
	for ctx.Err() == nil {
		err := n.remote.ServeWorkloads(ctx, n.agent, func() { wait = least; opened() })
		if ctx.Err() != nil {
			break
		}
		n.deps.Log.Info("the connection to control is down", "error", err, "again_ms", wait)
		clock.Sleep(ctx, n.deps.Clock, msec(wait))
		wait = min(most, 2*wait)
	}
	return nil //nolint:nilerr // it ends with ctx, as it should
}

// workloads finds a node's workloads: in this process, or through the node's tunnel.
func (a *Agent) workloads(nodeID string) (drover.Workloads, error) {
	if a.node != nil && a.node.agent.NodeID() == nodeID {
		return a.node.agent, nil
	}
	return a.remote.Workloads(nodeID)
}
