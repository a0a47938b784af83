package server

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	nomadagent "github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/telemetry"
)

// agentInfo is what the process says of itself.
type agentInfo struct {
	*Agent
	servers.Operator
}

// Self implements nomadagent.Process. Tokens and other secrets are not shown.
func (a agentInfo) Self() nomadagent.Self {
	return nomadagent.Self{Config: a.cfg.Shown(), Member: a.member(), Stats: a.stats()}
}

// stats are texts under Nomad's names.
func (a agentInfo) stats() map[string]map[string]string {
	out := map[string]map[string]string{
		"nomad": {"server": strconv.FormatBool(a.control != nil), "leader": strconv.FormatBool(a.control != nil && a.control.log.IsLeader())},
		"runtime": {
			"arch": runtime.GOARCH, "version": runtime.Version(), "kernel.name": runtime.GOOS,
			"cpu_count": strconv.Itoa(runtime.NumCPU()), "max_procs": strconv.Itoa(runtime.GOMAXPROCS(0)),
			"goroutines": strconv.Itoa(runtime.NumGoroutine()),
		},
	}
	if a.control != nil {
		out["nomad"]["leader_addr"] = a.Leader()
		out["raft"] = a.control.log.Stats().Raft
		out["drover"] = map[string]string{
			"cluster_version": strconv.Itoa(a.control.log.Version()), "reads": a.control.servers.Member().Protocol.String(),
		}
	}
	if a.node != nil {
		out["client"] = map[string]string{"node_id": a.node.agent.NodeID()}
	}
	return out
}

// LocalNode implements nomadagent.Process.
func (a agentInfo) LocalNode() string {
	if a.node == nil {
		return ""
	}
	return a.node.agent.NodeID()
}

// Schedulers implements nomadagent.Servers.
func (a agentInfo) Schedulers() (int, []string, time.Time) { return a.control.leader.Schedulers() }

// SetSchedulers implements nomadagent.Servers.
func (a agentInfo) SetSchedulers(count int, types []string) error {
	return a.control.leader.SetSchedulers(count, types)
}

// Health implements nomadagent.Process.
func (a agentInfo) Health() (server, client *nomadagent.Health) {
	if a.control != nil {
		_, led := a.control.servers.Leader()
		server = &nomadagent.Health{Ok: led, Message: "ok"}
		if !server.Ok {
			server.Message = "no leader"
		}
		if sick := a.control.log.Stats().Sick; sick != "" {
			server.Ok, server.Message = false, sick
		}
		if why := a.control.saves.Problem(); why != "" && server.Ok { // it serves as well as before
			server.Message = "ok, but the state is not saved as scheduled: " + why
		}
	}
	if a.node != nil {
		client = &nomadagent.Health{Ok: true, Message: "ok"}
	}
	return server, client
}

// Metrics implements nomadagent.Process.
func (a agentInfo) Metrics() http.Handler { return a.metrics }

// Logs implements nomadagent.Process.
func (a agentInfo) Logs(level string, asJSON bool) (nomadagent.LogTail, error) {
	if a.deps.Ring == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this agent keeps no log to watch")
	}
	l, err := telemetry.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	return logTail{a.deps.Ring.Tail(l, asJSON)}, nil
}

type logTail struct{ t *telemetry.Tail }

// Next implements nomadagent.LogTail.
func (l logTail) Next(ctx context.Context) ([]byte, error) { return l.t.Next(ctx) }

// Close implements nomadagent.LogTail.
func (l logTail) Close() { l.t.Close() }

// nodeInfo is agentInfo of an agent without server, which has none to act on.
type nodeInfo struct{ agentInfo }

// Peers implements nomadagent.Servers: they are the servers that the node was told.
func (n nodeInfo) Peers() []string { return n.cfg.Client.ServerList() }

// Leader implements nomadagent.Servers: servers know it.
func (nodeInfo) Leader() string { return "" }

// Join implements nomadagent.Servers.
func (nodeInfo) Join(context.Context, []string) (int, error) { return 0, errNoServer() }

// ForceLeave implements nomadagent.Servers.
func (nodeInfo) ForceLeave(string, bool) error { return errNoServer() }

// errNoServer refuses what only a server can do of itself.
func errNoServer() error {
	return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
}
