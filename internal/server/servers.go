package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/config"
	joining "github.com/drover-project/drover/internal/control/cluster"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/httpapi/relay"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
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
	deps := servers.Deps{Store: c.store, Clock: d.Clock, IDs: d.IDs, Logger: d.Log.With("part", "servers"), Samples: a.samples}
	self := members.Self{
		ID: "local", Name: cfg.AgentName(), Region: cfg.Region, Datacenter: cfg.Datacenter, RPCAddr: cfg.RPCAddress(),
		HTTPAddr: a.advertised(), Expect: cfg.Expect(), NonVoter: optional.Value(cfg.Server.NonVoter), Zone: cfg.Server.Zone,
		Version: version.Version,
	}
	if !cfg.Clustered() {
		return servers.Alone(servers.Config{Self: self, Autopilot: a.autopilotConfig()}, deps), nil
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
		Self: self, Folder: a.logFolder(), Gossip: a.gossipConfig(), Encrypt: cfg.Server.Encrypt,
		Autopilot: a.autopilotConfig(), Seed: cfg.Autopilot != nil,
		Join: joining.Config{RetryJoin: cfg.Server.Join()},
	}
	sc.Join.RetryMax, sc.Join.RetryInterval = cfg.Server.JoinTries()
	sc.TLS = a.live.RPC.Source()
	sc.Accept, sc.Revoked = a.live.RPC.Listening("h2"), c.revoked
	if sc.TLS != nil && a.certifies() {
		sc.Accept = gate.TLS(c.gate, sc.TLS)
	}
	sc.Accept = c.revoked.Config(sc.Accept)
	return servers.Listen(c.revoked.Listen(a.rpc), sc, deps)
}

// gossipConfig says how this server gossips. On loopback others are neighbours, and failures are noticed sooner.
func (a *Agent) gossipConfig() members.Config {
	cfg := a.cfg
	out := members.Config{
		Bind: cfg.SerfAddress(), DataDir: a.logFolder(), Rejoin: optional.Value(cfg.Server.RejoinAfterLeave),
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

// autopilotConfig is how servers are kept healthy while nothing is stored.
func (a *Agent) autopilotConfig() cluster.Autopilot {
	out := cluster.DefaultAutopilot()
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
		out.EnableRedundancyZones, out.DisableUpgradeMigration = optional.Value(c.Zones), optional.Value(c.NoMigration)
		out.EnableCustomUpgrades = optional.Value(c.CustomUpgrades)
	}
	return out
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
		mux.Handle(link.PipePath, a.remote.Pipes(a.own))
		mux.Handle("/", relay.FromPeer(faces))
		srv := &http.Server{
			Handler: a.counted(peercall.Identified(mux)), ConnContext: peercall.ConnContext, ReadHeaderTimeout: 10 * time.Second,
		}
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
		defer stop()
		err = srv.Serve(a.control.servers.Forwarded())
		if ctx.Err() != nil {
			return nil
		}
		return err
	}}
}

// leaving returns a context that ends with ctx, but after this server has handed leadership over. It has left the cluster by then
// if the configuration wants that for the signal which ends the process.
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
		} else {
			a.control.servers.HandOver(context.WithoutCancel(ctx))
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
