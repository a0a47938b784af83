package server

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"
	"time"

	joining "github.com/drover-project/drover/internal/control/cluster"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/httpapi/relay"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/addresses"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/server/settings"
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
		return servers.Alone(servers.Config{Self: self, Autopilot: settings.Autopilot(cfg.Autopilot)}, deps), nil
	}
	var err error
	if self.ID, err = servers.ReadID(a.logFolder(), d.IDs); err != nil {
		return nil, err
	}
	host := fingerprint.Probe(a.dataDir).IP
	self.RPCAddr = addresses.Usable(a.RPCAddr(), host)
	if adv := cfg.Advertise; adv != nil && adv.RPC != "" {
		self.RPCAddr = addresses.WithPort(adv.RPC, a.rpc)
	}
	sc := servers.Config{
		Self: self, Folder: a.logFolder(), Gossip: settings.Gossip(cfg, a.logFolder()), Encrypt: cfg.Server.Encrypt,
		Autopilot: settings.Autopilot(cfg.Autopilot), Seed: cfg.Autopilot != nil,
		Join: joining.Config{RetryJoin: cfg.Server.Join()},
	}
	sc.Join.RetryMax, sc.Join.RetryInterval = cfg.Server.JoinTries()
	sc.TLS = a.live.RPC.Source()
	sc.Accept, sc.Revoked = a.live.RPC.Listening("h2"), c.revoked
	if sc.TLS != nil && a.certifies() {
		sc.Accept = gate.TLS(c.gate, sc.TLS)
	}
	sc.Accept = c.revoked.Config(sc.Accept)
	_, sc.Handshake = a.cfg.Limits.Handshakes()
	return servers.Listen(c.revoked.Listen(a.rpc), sc, deps)
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
			Handler: a.counted().Handler(peercall.Identified(mux)), ConnContext: peercall.ConnContext, ReadHeaderTimeout: 10 * time.Second,
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
