package server

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/node/stats"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/host"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/internal/version"
)

// node is the node agent of this process.
type node struct {
	agent  *agent.Agent
	remote *link.Dialed // to servers in other processes; nil where there can be none
	host   *host.Host
	guard  *machine.Guard // nil without client.machine
}

// openNode builds the agent. Control is called directly when it is in this process, else dialled.
func (a *Agent) openNode(ctx context.Context) (*node, error) {
	d := a.deps
	h, err := host.Open(a.cfg, host.Deps{DataDir: a.dataDir, Clock: d.Clock, Log: d.Log})
	if err != nil {
		return nil, err
	}
	n := &node{host: h}
	var sweeper agent.GroupSweeper
	if groups := h.Groups(); groups != nil {
		sweeper = groups
	}
	cfg, err := a.nodeConfig(h.SharedCores())
	if err != nil {
		return nil, err
	}
	controller, err := a.controllerOf(n, cfg)
	if err != nil {
		return nil, err
	}
	tasks := a.metrics.Allocs()
	n.agent, err = agent.New(cfg, agent.Deps{
		Groups: sweeper, Networks: h.Networks(), Devices: h.Devices(), Evaluator: a.texts.Templates(),
		Controller: controller, Drivers: h.Drivers(), Clock: d.Clock, IDs: d.IDs, Log: d.Log.With("part", "node"), Host: stats.New(d.Clock),
		TaskAPI: a.taskAPI(),
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

// nodeConfig is what the configuration says of the node. Errors: Invalid.
func (a *Agent) nodeConfig(sharedCores bool) (agent.Config, error) {
	cfg := a.cfg.Client
	out := agent.Config{
		DataDir: a.dataDir, InMemory: a.forgetful(), SecretsInMemory: true, ShieldFolders: true, StopOnExit: a.cfg.Dev,
		Name: a.cfg.Name, Region: a.cfg.Region, Datacenter: a.cfg.Datacenter, NodePool: cfg.NodePool, NodeClass: cfg.NodeClass, Meta: cfg.Meta,
		MinDynamicPort: cfg.MinDynamicPort, MaxDynamicPort: cfg.MaxDynamicPort,
		HTTPAddr: a.advertised(), Version: version.Nomad, DroverVersion: version.Version,
		CPUMHz: int64(cfg.CPUTotal), MemoryMB: int64(cfg.MemoryTotalMB), DiskMB: int64(cfg.DiskTotalMB),
		MaxAllocs: cfg.NodeMaxAllocs, HostVolumes: hostVolumes(cfg), VolumesDir: cfg.HostVolumesDir, VolumePaths: cfg.HostVolumePaths,
		VolumePluginDir: cmp.Or(cfg.HostVolumePluginDir, filepath.Join(a.dataDir, "host_volume_plugins")),
		HostNetworks:    hostNetworks(cfg), Interface: cfg.NetworkInterface,
		MaxKillTimeout: config.Duration(cfg.MaxKillTimeout, 0), SharedCores: sharedCores,
		GC: agent.GCConfig{
			MaxAllocs: cfg.GCMaxAllocs, DiskPercent: cfg.GCDiskUsage, InodePercent: cfg.GCInodeUsage,
			Interval: config.Duration(cfg.GCInterval, 0), MinAge: config.Duration(cfg.GCMinAge, 0), MaxAge: config.Duration(cfg.GCMaxAge, 0),
		},
		PublishAllocMetrics: optional.Value(a.cfg.Telemetry.AllocMetrics),
		CollectionInterval:  config.Duration(a.cfg.Telemetry.CollectionInterval, 0),
	}
	if cfg.NetworkInterface != "" {
		if err := new(fingerprint.Host{Attributes: map[string]string{}}).On(cfg.NetworkInterface); err != nil {
			return out, drover.Errorf(drover.Invalid, "client.network_interface: %w", err)
		}
	}
	artifacts, err := cfg.Artifacts()
	if err != nil {
		return out, err
	}
	out.ArtifactAllow, out.ArtifactTimeout, out.ArtifactSize = artifacts.Allow, artifacts.Timeout, artifacts.Size
	out.ArtifactUnpacked, out.ArtifactFiles = artifacts.Unpacked, artifacts.UnpackedMany
	if cfg.Template != nil {
		out.DenyFunctions = cfg.Template.FunctionDenylist
	}
	if r := cfg.Reserved; r != nil {
		out.Reserved = drover.Capacity{CPU: int64(r.CPU), MemoryMB: int64(r.MemoryMB), DiskMB: int64(r.DiskMB)}
		out.ReservedPorts = r.ReservedPorts
	}
	for _, n := range cfg.HostNetworks { // numbers are given out once a node, whatever the address
		if n.ReservedPorts != "" {
			out.ReservedPorts = strings.TrimPrefix(out.ReservedPorts+","+n.ReservedPorts, ",")
		}
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
	if a.node == nil {
		return false, nil
	}
	return a.node.host.Validate(t)
}

// hostVolumes are the volumes of the configuration by their names, as the node reports them to control.
// hostNetworks are the names that the configuration gives to addresses of the machine.
func hostNetworks(cfg *config.Client) map[string]*drover.HostNetworkInfo {
	out := map[string]*drover.HostNetworkInfo{}
	for _, n := range cfg.HostNetworks {
		out[n.Name] = &drover.HostNetworkInfo{Name: n.Name, CIDR: n.CIDR, Interface: n.Interface, ReservedPorts: n.ReservedPorts}
	}
	return out
}

func hostVolumes(cfg *config.Client) map[string]*drover.HostVolumeInfo {
	out := map[string]*drover.HostVolumeInfo{}
	for _, v := range cfg.HostVolumes {
		out[v.Name] = &drover.HostVolumeInfo{Path: v.Path, ReadOnly: optional.Value(v.ReadOnly)}
	}
	return out
}

// parts are the loops of the node. There are tunnels only to control in other processes.
func (a *Agent) nodeParts() []lifecycle.Part {
	n := a.node
	parts := []lifecycle.Part{{Name: "node", Run: n.runAgent}, {Name: "images", Run: n.host.CollectImages}}
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

// runAgent runs the agent, then gives back what the machine's drivers have.
func (n *node) runAgent(ctx context.Context) error {
	err := n.agent.Run(ctx)
	n.host.Close()
	return err
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
