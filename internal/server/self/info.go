package self

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/archive"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
	nomadagent "github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/telemetry"
)

// Control is the control plane of the process.
type Control struct {
	Servers *servers.Servers
	Log     *raftlog.Log
	Leader  *leader.Leader
	Store   *store.Store
	Saves   *archive.Schedule        // nil: nobody wants it
	Locked  func() map[string]string // why root keys cannot be unwrapped here, by their ids; nil: it has no keyring
}

// Deps is what an Info tells of.
type Deps struct {
	Config  *config.Agent
	Control *Control        // nil without server
	NodeID  string          // of the node in this process; "" without
	Ring    *telemetry.Ring // of the log; nil if nothing keeps it
	Metrics http.Handler
	Again   func() error    // has the configuration read again
	Pools   func() []string // says in what the pools of this server's files are not the fleet's; nil = nothing differs
	Clock   clock.Clock
}

// Info is what the process says of itself.
type Info struct {
	servers.Operator
	deps Deps
}

// New makes one. The servers of an agent without server are none.
func New(d Deps) Info {
	if d.Control == nil {
		return Info{servers.Alone(servers.Config{}, servers.Deps{Clock: d.Clock}).Operate(), d}
	}
	return Info{d.Control.Servers.Operate(), d}
}

// Self implements nomadagent.Process. Tokens and other secrets are not shown.
func (i Info) Self() nomadagent.Self {
	return nomadagent.Self{Config: i.deps.Config.Shown(), Member: i.member(), Stats: i.stats()}
}

// stats are texts under Nomad's names.
func (i Info) stats() map[string]map[string]string {
	out := map[string]map[string]string{
		"nomad": {
			"server": strconv.FormatBool(i.deps.Control != nil),
			"leader": strconv.FormatBool(i.deps.Control != nil && i.deps.Control.Log.IsLeader()),
		},
		"runtime": {
			"arch": runtime.GOARCH, "version": runtime.Version(), "kernel.name": runtime.GOOS,
			"cpu_count": strconv.Itoa(runtime.NumCPU()), "max_procs": strconv.Itoa(runtime.GOMAXPROCS(0)),
			"goroutines": strconv.Itoa(runtime.NumGoroutine()),
		},
	}
	if i.deps.Control != nil {
		out["nomad"]["leader_addr"] = i.Leader()
		out["raft"] = i.deps.Control.Log.Stats().Raft
		out["drover"] = map[string]string{
			"cluster_version": strconv.Itoa(i.deps.Control.Log.Version()), "reads": i.deps.Control.Servers.Member().Protocol.String(),
		}
	}
	if i.deps.NodeID != "" {
		out["client"] = map[string]string{"node_id": i.deps.NodeID}
	}
	return out
}

// LocalNode implements nomadagent.Process.
func (i Info) LocalNode() string { return i.deps.NodeID }

// Reload implements nomadagent.Process.
func (i Info) Reload() error { return i.deps.Again() }

// Schedulers implements nomadagent.Servers.
func (i Info) Schedulers() (int, []string, time.Time) { return i.deps.Control.Leader.Schedulers() }

// SetSchedulers implements nomadagent.Servers.
func (i Info) SetSchedulers(count int, types []string) error {
	return i.deps.Control.Leader.SetSchedulers(count, types)
}

// Health implements nomadagent.Process.
func (i Info) Health() (server, client *nomadagent.Health) {
	if i.deps.Control != nil {
		_, led := i.deps.Control.Servers.Leader()
		server = &nomadagent.Health{Ok: led, Message: "ok"}
		if !server.Ok {
			server.Message = "no leader"
		}
		if sick := i.deps.Control.Log.Stats().Sick; sick != "" {
			server.Ok, server.Message = false, sick
		}
		if why := i.deps.Control.Saves.Problem(); why != "" && server.Ok { // it serves as well as before
			server.Message = "ok, but the state is not saved as scheduled: " + why
		}
	}
	if i.deps.NodeID != "" {
		client = &nomadagent.Health{Ok: true, Message: "ok"}
	}
	return server, client
}

// Metrics implements nomadagent.Process.
func (i Info) Metrics() http.Handler { return i.deps.Metrics }

// Logs implements nomadagent.Process.
func (i Info) Logs(level string, asJSON bool) (nomadagent.LogTail, error) {
	if i.deps.Ring == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this agent keeps no log to watch")
	}
	l, err := telemetry.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	return logTail{i.deps.Ring.Tail(l, asJSON)}, nil
}

type logTail struct{ t *telemetry.Tail }

// Next implements nomadagent.LogTail.
func (l logTail) Next(ctx context.Context) ([]byte, error) { return l.t.Next(ctx) }

// Close implements nomadagent.LogTail.
func (l logTail) Close() { l.t.Close() }

// NodeOnly is the Info of an agent without server, which has none to act on.
type NodeOnly struct{ Info }

// Peers implements nomadagent.Servers: they are the servers that the node was told.
func (n NodeOnly) Peers() []string { return n.deps.Config.Client.ServerList() }

// Leader implements nomadagent.Servers: servers know it.
func (NodeOnly) Leader() string { return "" }

// Join implements nomadagent.Servers.
func (NodeOnly) Join(context.Context, []string) (int, error) { return 0, errNoServer() }

// ForceLeave implements nomadagent.Servers.
func (NodeOnly) ForceLeave(string, bool) error { return errNoServer() }

// errNoServer refuses what only a server can do of itself.
func errNoServer() error {
	return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
}

// member is this process.
func (i Info) member() nomadagent.Member {
	if i.deps.Control != nil {
		return servers.MemberOf(i.deps.Control.Servers.Member())
	}
	cfg := i.deps.Config
	return servers.MemberOf(members.Member{Status: members.Alive, Self: members.Self{
		ID: "local", Name: cfg.AgentName(), Region: cfg.Region, Datacenter: cfg.Datacenter, RPCAddr: cfg.RPCAddress(),
	}})
}
