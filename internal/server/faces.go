package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/whatif"
	"github.com/drover-project/drover/internal/httpapi"
	fleetface "github.com/drover-project/drover/internal/httpapi/fleet"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/nomad/vars"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
	"github.com/drover-project/drover/internal/httpapi/throttle"
	"github.com/drover-project/drover/internal/httpapi/web"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/server/revoked"
	"github.com/drover-project/drover/internal/server/self"
	"github.com/drover-project/drover/internal/version"
)

func msec(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// httpPart serves the faces on the one port.
func (a *Agent) httpPart() lifecycle.Part {
	return lifecycle.Part{Name: "http", Run: func(ctx context.Context) error {
		handler, err := a.handler()
		if err != nil {
			return err
		}
		most := 0 // of one address
		if l := a.cfg.Limits; l != nil {
			most = optional.Value(l.HTTPMaxConns)
		}
		s := &httpapi.Server{
			Handler: httpapi.LimitRequests(a.live.Headers(handler), most), Logger: a.deps.Log.With("part", "http"), Clock: a.deps.Clock,
		}
		ln := httpapi.LimitConns(a.http, most)
		if secure := a.live.HTTP.Listening(httpapi.Protocols...); secure != nil {
			if a.control != nil {
				ln, secure = a.control.revoked.Listen(ln), a.control.revoked.Config(secure)
			}
			ln = tls.NewListener(ln, secure)
		}
		return s.Serve(ctx, ln)
	}}
}

// handler returns the faces, which are joined once: what they measure has one name each.
func (a *Agent) handler() (http.Handler, error) {
	a.joined.once.Do(func() { a.joined.handler, a.joined.err = a.joinFaces() })
	return a.joined.handler, a.joined.err
}

// joinFaces joins the faces. A process without server answers of itself only, and has a server answer the rest.
func (a *Agent) joinFaces() (http.Handler, error) {
	guard, err := a.pageGuard()
	if err != nil {
		return nil, err
	}
	shared := httpapi.Config{
		Logger: a.deps.Log.With("part", "http"), Clock: a.deps.Clock, Observe: a.metrics.Requests(),
		Guard: guard, Audit: a.audit,
	}
	shared.Open = a.cfg.OpenRoutes
	if l := a.cfg.Limits; l != nil {
		shared.MaxBody = l.MaxBodyBytes
		shared.Limits = a.requestLimits(l)
	}
	if a.control == nil {
		a.relay = a.openNodeRelay()
		a.joined.known = a.relay.Known(a.cfg.RememberTokens())
		shared.Relay, shared.ServersDecide, shared.Resolver = a.relay, true, a.resolver()
		return withPage(shared, a.nodeFaces(shared)), nil
	}
	if a.control.servers.Clustered() {
		a.relay = a.openRelay()
		shared.Relay = a.relay
	}
	shared.Resolver = a.resolver()
	faces := []httpapi.Face{
		nomad.New(nomad.Config{
			State: execseam.State{Store: a.control.store}, Intake: a.control.intake, Nodes: nodesFunc(a.workloads),
			Events: execseam.Events{Buffer: a.control.events}, Archives: nomadArchives{a.control.archives}, ACL: a.nomadAccess(),
			Keys: a.nomadKeyring(), Introductions: a.introductions(),
			Vars:     vars.Config{Variables: a.control.variables},
			Agent:    a.info(),
			ParseHCL: a.texts.ParseHCL, DiffJobs: func(old, job *drover.Job) any { return intake.Diff(old, job) }, ValidateTask: a.validateTask,
			Clock: a.deps.Clock, ID: a.deps.IDs, Logger: shared.Logger, Region: a.cfg.Region,
			LastContact: a.control.log.LastContact, NodeAgent: a.remote.Agent,
			DisableExec: optional.Value(a.cfg.Client.NoRemoteExec), Pprof: a.profiled(),
		}),
		poseidon.New(poseidon.Config{
			Driver:  a.cfg.Exec.PoseidonDriver,
			Version: version.Version, PublicURL: a.cfg.Exec.PublicURL, PrewarmingThreshold: a.cfg.Exec.AlertThreshold,
			ClaimWait: config.Duration(a.cfg.Exec.ClaimWait, 0),
		}, poseidon.Deps{
			Environments: a.exec, Runners: a.exec, Executions: a.exec,
			Templates: execseam.Templates{Store: a.control.store, Intake: a.control.intake},
			Clock:     a.deps.Clock, Log: shared.Logger,
		}),
		native.New(native.Config{}, native.Deps{
			Environments: a.exec, Runners: a.exec, Executions: a.exec, Observations: a.exec, Variables: a.control.variables,
			Incarnation: a.exec.Terms, Receipts: a.control.issuer, Known: a.control.tokens, Checkup: a.info().Checkup,
			Attention: a.attention().For, Examine: a.examination(), Audit: a.auditRecords(),
			History: a.exec.history, Topology: a.topology().Topology,
			Clock: a.deps.Clock, Log: shared.Logger,
		}),
		&fleetface.Face{
			Fleet: a.fleet.Office(), Work: a.fleet.Work(), Metrics: a.metrics, Simulate: whatif.Simulate, Clock: a.deps.Clock,
		},
	}
	return withPage(shared, faces), nil
}

// withPage joins the faces and the page, which asks them.
func withPage(shared httpapi.Config, faces []httpapi.Face) http.Handler {
	page := &web.Face{Clock: shared.Clock}
	page.API = httpapi.Handler(shared, append(faces, page)...)
	return page.API
}

// requestLimits are those of the configuration; nil if it has none.
func (a *Agent) requestLimits(l *config.Limits) *httpapi.Limits {
	if l.TokenRate == 0 && l.AddressRate == 0 {
		return nil
	}
	refused := a.metrics.Counter("drover.http.refused_by_limits", "requests that came too often, by what is bounded", "by")
	out := &httpapi.Limits{Refused: func(by string) { refused.WithLabelValues(by).Inc() }}
	if l.TokenRate > 0 {
		out.Tokens = throttle.New[string](l.TokenRate, l.TokenBurst)
	}
	if l.AddressRate > 0 {
		out.Addresses = throttle.New[netip.Addr](l.AddressRate, l.AddressBurst)
	}
	return out
}

// profiled reports whether profiles are served: where nobody else comes, where somebody asked for it, and where they need a right.
func (a *Agent) profiled() bool {
	return a.cfg.Dev || optional.Value(a.cfg.Debug) || a.cfg.AccessControl()
}

// nodeFaces are those of an agent without server: all routes, of which the relay leaves it those about itself.
func (a *Agent) nodeFaces(shared httpapi.Config) []httpapi.Face {
	info := self.NodeOnly{Info: a.info()}
	return []httpapi.Face{
		nomad.New(nomad.Config{
			State: execseam.State{Store: store.New()}, Nodes: nodesFunc(a.workloads), Agent: info, Clock: a.deps.Clock, ID: a.deps.IDs,
			Logger: shared.Logger, Region: a.cfg.Region, Pprof: a.profiled(),
		}),
		poseidon.New(poseidon.Config{Version: version.Version}, poseidon.Deps{Clock: a.deps.Clock, Log: shared.Logger}),
		native.New(native.Config{}, native.Deps{Checkup: info.Checkup, Clock: a.deps.Clock, Log: shared.Logger}),
		&fleetface.Face{Metrics: a.metrics},
	}
}

// info is what this process says of itself.
func (a *Agent) info() self.Info {
	d := self.Deps{Config: a.cfg, Ring: a.deps.Ring, Metrics: a.metrics, Again: a.Reload, Clock: a.deps.Clock}
	if c := a.control; c != nil {
		d.Control = c.self()
	}
	if a.fleet != nil {
		d.Pools = a.fleet.Differences
	}
	if a.node != nil {
		d.NodeID = a.node.agent.NodeID()
	}
	return self.New(d)
}

// self is the control plane as the agent tells of it.
func (c *control) self() *self.Control {
	return &self.Control{Servers: c.servers, Log: c.log, Leader: c.leader, Store: c.store, Saves: c.saves}
}

// rpcPart serves nodes that dial.
func (a *Agent) rpcPart() lifecycle.Part {
	return lifecycle.Part{Name: "rpc", Run: func(ctx context.Context) error {
		var protocols http.Protocols
		front := remoteNodes{a.control.front, a.control.servers, a.advertised()}
		relays := link.NewRelays()
		handler, secure := a.links(relays.Handler(front, link.Handler(front, front, a.remote)))
		protocols.SetUnencryptedHTTP2(secure == nil)
		protocols.SetHTTP2(secure != nil)
		programs, err := httpapi.NewGuard(httpapi.GuardConfig{Hosts: []string{"*"}}) // nodes dial any name, and no page has business here
		if err != nil {
			return err
		}
		handler = programs.Handler(handler, a.deps.Log.With("part", "rpc"), a.deps.Clock)
		guard := a.control.revoked
		handler = guard.Handler(func(r *http.Request) string { return link.CallerOf(r.Header).NodeID }, a.strangers(handler))
		srv := &http.Server{
			Handler: a.counted(handler), Protocols: &protocols, HTTP2: link.HTTP2(), TLSConfig: guard.Config(secure),
			ReadHeaderTimeout: 10 * time.Second, ConnContext: revoked.ConnContext,
			ErrorLog: slog.NewLogLogger(a.deps.Log.With("part", "rpc").Handler(), slog.LevelDebug), // anybody can break handshakes
		}
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
		defer stop()
		served, err := a.serveRelays(ctx, relays)
		if err != nil {
			return err
		}
		defer served()
		switch peers := a.control.servers; {
		case peers.Clustered():
			if secure != nil { // Serve takes HTTP/2 only of who says that it speaks it
				srv.TLSConfig = secure.Clone()
				srv.TLSConfig.NextProtos = []string{"h2"}
			}
			err = srv.Serve(peers.Nodes()) // whose handshakes are done
		case secure != nil:
			srv.ConnState = a.accepted
			err = srv.ServeTLS(guard.Listen(a.rpc), "", "")
		default:
			srv.ConnState = a.accepted
			err = srv.Serve(guard.Listen(a.rpc))
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}}
}

// accepted counts connections, where the port is not split (servers.Listen does it there).
func (a *Agent) accepted(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		a.samples.Count("nomad.nomad.rpc.accept_conn", 1)
	}
}

type nodesFunc func(nodeID string) (exchange.Workloads, error)

// Workloads implements allocations.Nodes of the Nomad face.
func (f nodesFunc) Workloads(nodeID string) (exchange.Workloads, error) { return f(nodeID) }

// counted counts the calls of nodes and of other servers, those of them that only read, and those that are answered with an error.
func (a *Agent) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.samples.Count("nomad.nomad.rpc.request", 1)
		if r.Method == http.MethodGet {
			a.samples.Count("nomad.nomad.rpc.query", 1)
		}
		answer := &failing{ResponseWriter: w}
		if next.ServeHTTP(answer, r); answer.status >= http.StatusBadRequest {
			a.samples.Count("nomad.nomad.rpc.request_error", 1)
		}
		a.recordRefused(r, answer)
	})
}
