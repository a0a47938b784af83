package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/autopilot"
	"github.com/drover-project/drover/internal/control/cluster"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/fleet/gate"
	nomadagent "github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/httpapi/relay"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/version"
)

// logFolder is where the log is; "" if nothing is kept.
func (a *Agent) logFolder() string {
	if a.forgetful() {
		return ""
	}
	return cmp.Or(a.cfg.Server.DataDir, filepath.Join(a.dataDir, "server"))
}

// openServers makes this server one among others, if the configuration says anything of them. Errors: Invalid for the
// certificates; those of the folder.
func (a *Agent) openServers(c *control) (*servers.Servers, error) {
	cfg, d := a.cfg, a.deps
	deps := servers.Deps{Store: c.store, Clock: d.Clock, IDs: d.IDs, Logger: d.Log.With("part", "servers")}
	self := members.Self{
		ID: "local", Name: cfg.AgentName(), Region: cfg.Region, Datacenter: cfg.Datacenter, RPCAddr: cfg.RPCAddress(),
		HTTPAddr: a.advertised(), Expect: cfg.Expect(), NonVoter: optional.Value(cfg.Server.NonVoter), Zone: cfg.Server.Zone,
		Version: version.Version,
	}
	if !cfg.Clustered() {
		return servers.Alone(self, deps), nil
	}
	var err error
	if self.ID, err = servers.ReadID(a.logFolder(), d.IDs); err != nil {
		return nil, err
	}
	host := fingerprint.Probe(a.dataDir).IP
	self.RPCAddr = usable(a.RPCAddr(), host)
	if adv := cfg.Advertise; adv != nil && adv.RPC != "" {
		self.RPCAddr = withPort(adv.RPC, a.rpc)
	}
	sc := servers.Config{
		Self: self, Folder: a.logFolder(), Gossip: a.gossipConfig(), Autopilot: a.autopilotConfig(),
		Join: cluster.Config{RetryJoin: cfg.Server.Join()},
	}
	sc.Join.RetryMax, sc.Join.RetryInterval = cfg.Server.JoinTries()
	if sc.TLS, err = tlsFor(cfg.TLS, "rpc"); err != nil {
		return nil, err
	}
	if sc.TLS != nil && buys(cfg) {
		sc.Accept = gate.TLS(c.gate, sc.TLS)
	}
	return servers.Listen(a.rpc, sc, deps), nil
}

// gossipConfig says how this server gossips. On loopback others are neighbours, and failures are noticed sooner.
func (a *Agent) gossipConfig() members.Config {
	cfg := a.cfg
	out := members.Config{
		Bind: cfg.SerfAddress(), Key: cfg.Server.Encrypt, DataDir: a.logFolder(), Rejoin: optional.Value(cfg.Server.RejoinAfterLeave),
	}
	host, port, _ := net.SplitHostPort(out.Bind) // made of the two
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		out.Pace = members.Local
	}
	if adv := cfg.Advertise; adv != nil && adv.Serf != "" {
		out.Advertise = adv.Serf
		if _, _, err := net.SplitHostPort(adv.Serf); err != nil {
			out.Advertise = net.JoinHostPort(adv.Serf, port)
		}
	}
	return out
}

// autopilotConfig is how servers are kept healthy.
func (a *Agent) autopilotConfig() func() autopilot.Config {
	out := autopilot.DefaultConfig()
	if c := a.cfg.Autopilot; c != nil {
		if c.Cleanup != nil {
			out.CleanupDeadServers = *c.Cleanup
		}
		if c.MaxTrailingLogs != nil {
			out.MaxTrailingLogs = uint64(max(0, *c.MaxTrailingLogs)) // checked
		}
		out.MinQuorum = uint(max(0, c.MinQuorum)) // checked
		out.LastContactThreshold = config.Duration(c.LastContactThreshold, out.LastContactThreshold)
		out.ServerStabilizationTime = config.Duration(c.StabilizationTime, out.ServerStabilizationTime)
		out.RedundancyZones, out.DisableUpgradeMigration = optional.Value(c.Zones), optional.Value(c.NoMigration)
	}
	return func() autopilot.Config { return out }
}

// peersPart serves the other servers: their calls, and the requests that they relay.
func (a *Agent) peersPart() lifecycle.Part {
	return lifecycle.Part{Name: "peers", Run: func(ctx context.Context) error {
		faces, err := a.handler()
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle(peercall.Prefix, a.control.servers.Mux())
		mux.Handle("/", relay.FromPeer(faces))
		srv := &http.Server{Handler: peercall.Identified(mux), ConnContext: peercall.ConnContext, ReadHeaderTimeout: 10 * time.Second}
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
		defer stop()
		err = srv.Serve(a.control.servers.Forwarded())
		if ctx.Err() != nil {
			return nil
		}
		return err
	}}
}

// leaving returns a context that ends with ctx, but after this server has left the cluster, if the configuration wants that
// for the signal which ends the process.
func (a *Agent) leaving(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.control == nil || !a.control.servers.Clustered() {
		return ctx, func() {}
	}
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if a.leavesFor(cause) {
			if err := a.control.servers.Leave(context.WithoutCancel(ctx)); err != nil {
				a.deps.Log.Warn("leaving the cluster", "error", err)
			}
		}
		cancel(cause)
	})
	return out, func() { unwatch(); cancel(nil) }
}

// leavesFor reports whether the server leaves the cluster for good when that ends the process.
func (a *Agent) leavesFor(cause error) bool {
	var by interface{ Signal() os.Signal }
	if !errors.As(cause, &by) {
		return false
	}
	return by.Signal() == syscall.SIGINT && optional.Value(a.cfg.LeaveOnInterrupt) ||
		by.Signal() == syscall.SIGTERM && optional.Value(a.cfg.LeaveOnTerminate)
}

// member is a server as Nomad's clients know members of the gossip.
func member(m members.Member) nomadagent.Member {
	host, port, _ := net.SplitHostPort(m.Gossip)
	if m.Gossip == "" { // of a server that is alone
		host, port, _ = net.SplitHostPort(m.RPCAddr)
	}
	number, _ := strconv.ParseUint(port, 10, 16) // of a listener
	rpc, rpcPort, _ := net.SplitHostPort(m.RPCAddr)
	return nomadagent.Member{
		Name: m.FullName(), Addr: host, Port: uint16(number), Status: string(m.Status), //nolint:gosec // parsed as 16 bits
		Tags: map[string]string{ // with its address the port tells clients which member leads
			"region": m.Region, "dc": m.Datacenter, "role": "nomad", "build": version.Nomad, "id": m.ID, "port": rpcPort, "rpc_addr": rpc,
			"drover": m.Version, "raft_vsn": "3", "vsn": "1", "expect": strconv.Itoa(m.Expect),
		},
		ProtocolMin: 1, ProtocolMax: 5, ProtocolCur: 2, DelegateMin: 2, DelegateMax: 5, DelegateCur: 4,
	}
}

// member is this process.
func (a agentInfo) member() nomadagent.Member {
	if a.control != nil {
		return member(a.control.servers.Member())
	}
	return member(members.Member{Status: members.Alive, Self: members.Self{
		ID: "local", Name: a.cfg.AgentName(), Region: a.cfg.Region, Datacenter: a.cfg.Datacenter, RPCAddr: a.cfg.RPCAddress(),
	}})
}

// Members implements nomadagent.Servers.
func (a agentInfo) Members() (out []nomadagent.Member) {
	for _, m := range a.control.servers.Members() {
		out = append(out, member(m))
	}
	return out
}

// Leader implements nomadagent.Servers.
func (a agentInfo) Leader() string {
	leader, _ := a.control.servers.Leader()
	return leader.Address
}

// Join implements nomadagent.Servers.
func (a agentInfo) Join(ctx context.Context, addresses []string) (int, error) {
	g := a.control.servers.Gossip()
	if g == nil {
		return 0, drover.Errorf(drover.Invalid, "this server speaks with no other: set ports.serf, server.encrypt or bootstrap_expect")
	}
	targets := make([]string, len(addresses))
	for i, address := range addresses {
		targets[i] = config.SerfTarget(address)
	}
	return g.Join(ctx, targets)
}

// ForceLeave implements nomadagent.Servers.
func (a agentInfo) ForceLeave(name string, prune bool) error {
	if g := a.control.servers.Gossip(); g != nil {
		return g.ForceLeave(name, prune)
	}
	return nil
}

// Peers implements nomadagent.Servers.
func (a agentInfo) Peers() (out []string) {
	for _, s := range a.Raft().Servers {
		if s.Voter {
			out = append(out, s.Address)
		}
	}
	return out
}

// Raft implements nomadagent.Servers.
func (a agentInfo) Raft() nomadagent.RaftConfiguration {
	out := nomadagent.RaftConfiguration{Index: a.control.store.Snapshot().Index()}
	peers, err := a.control.log.Peers()
	if err != nil {
		return out
	}
	alone := !a.control.servers.Clustered()
	for _, p := range peers {
		one := nomadagent.RaftServer{ID: p.ID, Node: p.ID, Address: p.Address, Leader: p.Leader, Voter: p.Voter, RaftProtocol: "3"}
		if known, ok := a.control.servers.ByID(p.ID); ok && (!alone || p.Leader) {
			one.Node, one.Address = known.Name+"."+known.Region, known.Address
		}
		out.Servers = append(out.Servers, one)
	}
	return out
}
