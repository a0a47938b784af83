package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/insight"
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
	"github.com/drover-project/drover/internal/httpapi/web"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/addresses"
	"github.com/drover-project/drover/internal/server/attention"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/server/nodes"
	"github.com/drover-project/drover/internal/server/revoked"
	"github.com/drover-project/drover/internal/server/sampler"
	"github.com/drover-project/drover/internal/server/self"
	"github.com/drover-project/drover/internal/server/settings"
	"github.com/drover-project/drover/internal/version"
)

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
			within, _ := a.cfg.Limits.Handshakes()
			ln = httpapi.Encrypt(ln, httpapi.Handshakes{
				TLS: secure, Within: within, Most: httpapi.MostHandshakes, Clock: a.deps.Clock, Log: s.Logger,
			})
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
	guard, err := addresses.Guard(a.cfg)
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
		shared.Limits = a.limits(l)
	}
	if a.control == nil {
		a.relay = a.openNodeRelay()
		a.joined.known = a.relay.Known(a.cfg.RememberTokens())
		shared.Relay, shared.ServersDecide, shared.Resolver = a.relay, true, a.resolver()
		return a.withPage(shared, a.nodeFaces(shared)), nil
	}
	if a.control.servers.Clustered() {
		a.relay = a.openRelay()
		shared.Relay = a.relay
	}
	shared.Resolver = a.resolver()
	asked, nodesState := a.survey(), func() insight.NodesState { return a.control.store.Snapshot() }
	find := func(id string) *drover.Allocation { return a.control.store.Snapshot().Allocation(id) }
	samples := sampler.New(find, a.workloads, a.deps.Clock)
	faces := []httpapi.Face{
		nomad.New(nomad.Config{
			State: execseam.State{Store: a.control.store}, Intake: a.control.intake, Nodes: nodesFunc(a.workloads),
			Events: execseam.Events{Buffer: a.control.events}, NoEvents: a.cfg.Server.NoEvents(),
			Archives: nomadArchives{a.control.archives}, ACL: a.nomadAccess(),
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
			Attention: attention.New(a.sources().Facts, a.deps.Clock).For, Examine: asked.Examine, Audit: asked.Audit,
			ExamineNodes: func(node string) cluster.NodesExamination {
				return insight.ExamineNodes(a.control.store.Snapshot(), node)
			},
			History: a.exec.History(), Topology: attention.NewTopology(nodesState, a.deps.Clock).Newest,
			Usage: samples.Batch, PlanDrain: a.control.intake.PlanDrain, UsagePast: samples.Past, NodePast: samples.PastOfNode,
			Clock: a.deps.Clock, Log: shared.Logger,
		}),
		&fleetface.Face{
			Fleet: a.fleet.Office(), Work: a.fleet.Work(), Metrics: a.metrics, Simulate: whatif.Simulate, Clock: a.deps.Clock,
		},
	}
	return a.withPage(shared, faces), nil
}

// sources are what this server, which leads, knows of the cluster.
func (a *Agent) sources() attention.Sources {
	return attention.Sources{
		State: func() insight.State { return a.control.store.Snapshot() }, Health: a.control.servers.Operate().AutopilotHealth,
		Environments: a.exec, Fleet: a.fleet.Office(), Clock: a.deps.Clock,
	}
}

// withPage joins the faces and the page, which asks them, unless the page is switched off.
func (a *Agent) withPage(shared httpapi.Config, faces []httpapi.Face) http.Handler {
	if a.cfg.UI.Off() {
		return httpapi.Handler(shared, faces...)
	}
	page := &web.Face{Clock: shared.Clock, Sources: a.cfg.UI.Sources()}
	if ui := a.cfg.UI; ui != nil && ui.Label != nil {
		page.Label = parts.Label(*ui.Label)
	}
	page.API = httpapi.Handler(shared, append(faces, page)...)
	return page.API
}

// limits are those of requests; nil if the configuration has none.
func (a *Agent) limits(l *config.Limits) *httpapi.Limits {
	out := settings.Limits(l)
	if out != nil {
		refused := a.metrics.Counter("drover.http.refused_by_limits", "requests that came too often, by what is bounded", "by")
		out.Refused = func(by string) { refused.WithLabelValues(by).Inc() }
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
	return &self.Control{Servers: c.servers, Log: c.log, Leader: c.leader, Store: c.store, Saves: c.saves, Locked: c.keyring.Locked}
}

// rpcPart serves nodes that dial.
func (a *Agent) rpcPart() lifecycle.Part {
	return lifecycle.Part{Name: "rpc", Run: func(ctx context.Context) error {
		var protocols http.Protocols
		front := nodes.Remote{Front: a.control.front, Servers: a.control.servers, HTTPAddr: a.advertised()}
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
			Handler: a.counted().Handler(handler), Protocols: &protocols, HTTP2: link.HTTP2(), TLSConfig: guard.Config(secure),
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
			srv.ConnState, srv.TLSConfig = a.counted().Accepted, srv.TLSConfig.Clone() // likewise
			srv.TLSConfig.NextProtos = []string{"h2"}
			_, within := a.cfg.Limits.Handshakes()
			err = srv.Serve(httpapi.Encrypt(guard.Listen(a.rpc), httpapi.Handshakes{
				TLS: srv.TLSConfig, Within: within, Clock: a.deps.Clock, Log: a.deps.Log.With("part", "rpc"),
			}))
		default:
			srv.ConnState = a.counted().Accepted
			err = srv.Serve(guard.Listen(a.rpc))
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}}
}

type nodesFunc func(nodeID string) (exchange.Workloads, error)

// Workloads implements allocations.Nodes of the Nomad face.
func (f nodesFunc) Workloads(nodeID string) (exchange.Workloads, error) { return f(nodeID) }
