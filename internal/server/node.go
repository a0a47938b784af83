package server

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/cloud"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/examine"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/node/stats"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/host"
	"github.com/drover-project/drover/internal/server/settings"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/usage"
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
	cfg, err := settings.Node(a.cfg, settings.Process{
		DataDir: a.dataDir, Forgetful: a.forgetful(), HTTPAddr: a.advertised(), SharedCores: h.SharedCores(), Clock: d.Clock,
	})
	if err != nil {
		return nil, err
	}
	controller, err := a.controllerOf(n, cfg)
	if err != nil {
		return nil, err
	}
	tasks := a.metrics.Allocs()
	clouds := settings.Clouds(a.cfg.Client, d.Clock, d.Log.With("part", "cloud"))
	if !cfg.InMemory {
		clouds.Kept = filepath.Join(cmp.Or(cfg.StateDir, filepath.Join(cfg.DataDir, "client")), "cloud.json")
	}
	n.agent, err = agent.New(cfg, agent.Deps{
		Groups: sweeper, Networks: h.Networks(), Devices: h.Devices(), Evaluator: a.texts.Templates(),
		Controller: controller, Drivers: h.Drivers(), Clock: d.Clock, IDs: d.IDs, Log: d.Log.With("part", "node"), Host: stats.New(d.Clock),
		TaskAPI: a.taskAPI(), Clouds: cloud.New(clouds), Machine: examine.New(cfg.DataDir, d.Clock),
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
		a.metrics.Source(telemetry.HostMetrics(n.agent.Node, func() (*usage.HostStats, error) { return n.agent.NodeStats(ctx) }))
	}
	return n, nil
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

// stateDir is where the node has its identity and its state.
func (a *Agent) stateDir() string {
	return cmp.Or(a.cfg.Client.StateDir, filepath.Join(a.dataDir, "client"))
}

// keptServers is where the node remembers which servers there are; "" if nothing is to outlive the process.
func (a *Agent) keptServers() string {
	if a.forgetful() {
		return ""
	}
	return filepath.Join(a.stateDir(), "servers.json")
}

// validateTask asks the task's driver about its configuration; asked is false if this process does not have it.
func (a *Agent) validateTask(t *drover.Task) (asked bool, err error) {
	if a.node == nil {
		return false, nil
	}
	return a.node.host.Validate(t)
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
