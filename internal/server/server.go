package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/relay"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/nameserver"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/addresses"
	"github.com/drover-project/drover/internal/server/departure"
	"github.com/drover-project/drover/internal/server/enrol"
	"github.com/drover-project/drover/internal/server/execplane"
	"github.com/drover-project/drover/internal/server/fleetplane"
	"github.com/drover-project/drover/internal/server/live"
	"github.com/drover-project/drover/internal/server/names"
	"github.com/drover-project/drover/internal/server/regions"
	"github.com/drover-project/drover/internal/server/texts"
	"github.com/drover-project/drover/internal/statsd"
	"github.com/drover-project/drover/internal/takeover"
	"github.com/drover-project/drover/internal/telemetry"
)

// Deps is what an Agent needs of its process.
type Deps struct {
	Log   *slog.Logger
	Ring  *telemetry.Ring // the handler that Log writes through, for /v1/agent/monitor; may be nil
	Clock clock.Clock
	IDs   id.Source

	Again func() (*config.Agent, error) // reads the configuration again; nil if that cannot be
	Level *slog.LevelVar                // of the log; nil if it is fixed

	Reopen func() error // goes on in the file that is at log_file; nil if there is none
}

// Agent is a process's worth of Drover: control plane, node, or both, and the faces.
type Agent struct {
	cfg     *config.Agent
	deps    Deps
	dataDir string
	folder  *takeover.Folder
	metrics *telemetry.Metrics
	samples *telemetry.Samples

	control *control          // nil without server
	node    *node             // nil without client
	exec    *execplane.Plane  // nil without server
	fleet   *fleetplane.Plane // nil without server
	texts   texts.Evaluators
	live    *live.Settings
	ownCert *gate.Own          // the server's certificate where it makes it itself, else nil
	enrolls *enrol.Enrolling   // how this node gets its certificate; nil unless it does
	audit   *audit.Log         // nil: requests are not recorded
	dns     *nameserver.Server // nil without dns
	remote  *link.Nodes

	http    net.Listener
	rpc     net.Listener
	relay   *relay.Relay     // nil for a server that is alone
	regions *regions.Regions // likewise
	joined  struct {
		once    sync.Once
		handler http.Handler
		known   *relay.Resolver // of tokens of tasks; nil at a server
		err     error
	}
	told *gate.Announcement // of where rpc is, to nodes of the same user; nil if there is nothing to tell
}

// New builds an agent from a valid configuration: it takes the data folder, opens the log and the listeners, but
// serves nothing yet. Errors: Conflict when another agent has the data folder; Invalid; Unavailable for a port in use.
func New(ctx context.Context, cfg *config.Agent, deps Deps) (a *Agent, err error) {
	a = &Agent{cfg: cfg, deps: deps, metrics: telemetry.NewMetrics(deps.Clock), remote: link.NewNodes()}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	a.samples = a.metrics.Samples()
	a.metrics.Filter(cfg.Telemetry.PrefixFilter, cfg.Telemetry.FilterDefault == nil || *cfg.Telemetry.FilterDefault)
	a.texts = texts.Open(texts.DefaultLimits(), deps.Clock, deps.Log.With("part", "evaluator"))
	if a.live, err = live.New(cfg, deps.Again, deps.Level); err != nil {
		return a, err
	}
	if _, err = addresses.Guard(a.cfg); err != nil {
		return a, err
	}
	if a.folder, err = takeover.TakeFolder(ctx, cfg.DataDir, deps.Clock); err != nil {
		return a, err
	}
	a.dataDir = a.folder.Path()
	if err = a.openOwn(); err != nil {
		return a, err
	}
	if a.audit, err = a.record().Open(ctx, audit.Deps{Clock: deps.Clock, IDs: deps.IDs, Log: deps.Log.With("part", "audit")}); err != nil {
		return a, err
	}
	if a.http, err = takeover.Listen(ctx, cfg.HTTPAddress(), "ports.http", deps.Clock); err != nil {
		return a, err
	}
	if optional.Value(cfg.Server.Enabled) {
		if cfg.AwaitsNodes() {
			if a.rpc, err = takeover.Listen(ctx, cfg.RPCAddress(), "ports.rpc", deps.Clock); err != nil {
				return a, err
			}
			a.rpc = httpapi.LimitLinks(a.rpc, cfg.Limits.LinksOf())
		}
		if a.control, err = a.openControl(ctx); err != nil {
			return a, err
		}
		if a.control.servers.Clustered() {
			a.remote.Identify(a.control.servers.Self().ID)
			a.metrics.Source(a.remote.Gauges)
			a.openRegions()
		}
		a.tellNodes()
	}
	if err = a.enroll(ctx); err != nil {
		return a, err
	}
	if optional.Value(cfg.Client.Enabled) {
		if a.node, err = a.openNode(ctx); err != nil {
			return a, err
		}
	}
	if err = a.openPlanes(); err != nil {
		return a, err
	}
	nd := names.Deps{Faces: a.handler, Clock: deps.Clock}
	if a.node != nil {
		nd.Bridge = a.node.host.Bridge()
	}
	a.dns, err = names.Open(ctx, cfg.DNS, nd)
	return a, err
}

// openPlanes opens what a server has besides control: executions and the fleet.
func (a *Agent) openPlanes() (err error) {
	if a.control == nil {
		return nil
	}
	a.control.self().Measure(a.metrics)
	if a.exec, err = execplane.Open(a.cfg, a.execDeps()); err != nil {
		return err
	}
	a.fleet, err = fleetplane.Open(a.cfg, a.fleetDeps())
	return err
}

// openRegions makes what carries over what regions share.
func (a *Agent) openRegions() {
	c := a.control
	a.regions = regions.New(regions.Deps{
		Servers: c.servers, Log: c.log, Store: c.store, Region: a.cfg.Region, Authority: a.cfg.Authority(), Clock: a.deps.Clock,
		Replication: a.cfg.ReplicationToken(), Own: acl.Secret(a.cfg.APIToken), Methods: c.access, IDs: a.deps.IDs,
		Logger: a.deps.Log.With("part", "federation"),
	})
}

// execDeps is what the execution service needs of this agent, which has a control plane.
func (a *Agent) execDeps() execplane.Deps {
	c, d := a.control, a.deps
	return execplane.Deps{
		Store: c.store, Log: c.log, Servers: c.servers, Intake: c.intake, Events: c.events, Issuer: c.issuer, Workloads: a.workloads,
		Clock: d.Clock, IDs: d.IDs, Logger: d.Log, DataDir: a.dataDir, Forgetful: a.forgetful(), Local: a.node != nil,
	}
}

// fleetDeps is what the fleet needs of this agent, which has a control plane.
func (a *Agent) fleetDeps() fleetplane.Deps {
	c, d := a.control, a.deps
	return fleetplane.Deps{
		Store: c.store, Log: c.log, Intake: c.intake, View: c.view, Servers: c.servers, Metrics: a.metrics, Again: d.Again,
		Clock: d.Clock, IDs: d.IDs, Logger: d.Log, DataDir: a.dataDir, Forgetful: a.forgetful(), Address: addresses.Server(a.cfg, a.rpc),
	}
}

// HTTPAddr is where the faces are served.
func (a *Agent) HTTPAddr() string { return a.http.Addr().String() }

// advertised is what others are told of where the faces are.
func (a *Agent) advertised() string {
	return a.cfg.AdvertisedHTTP(a.HTTPAddr(), fingerprint.Probe(a.dataDir).IP)
}

// RPCAddr is where nodes dial; "" if nothing listens for them.
func (a *Agent) RPCAddr() string {
	if a.rpc == nil {
		return ""
	}
	return a.rpc.Addr().String()
}

// DataDir is where the agent keeps what it has; a temporary folder with -dev.
func (a *Agent) DataDir() string { return a.dataDir }

// Run serves until ctx ends or a part fails, then stops: the faces first, the log last.
func (a *Agent) Run(ctx context.Context) error {
	defer a.close()
	var g lifecycle.Group
	if a.audit != nil { // it ends last: what others still answer is recorded
		g.Ring(lifecycle.Part{Name: "audit", Run: a.audit.Run})
	}
	g.Ring(lifecycle.Part{Name: "evaluators", Run: func(ctx context.Context) error {
		return a.texts.Run(ctx, a.node != nil, a.control != nil)
	}})
	if a.ownCert != nil || a.enrolls != nil {
		g.Ring(lifecycle.Part{Name: "certificate", Run: a.renewCertificate})
	}
	if a.control != nil {
		g.Ring(a.control.logPart())
		g.Ring(a.control.parts(a.cfg.Server.SchedulerConfig)...)
		if a.rpc != nil {
			g.Ring(a.rpcPart())
		}
		if a.control.servers.Clustered() {
			g.Ring(a.peersPart())
			if a.cfg.Authority() != "" {
				g.Ring(lifecycle.Part{Name: "federation", Run: a.regions.Run})
			}
		}
	}
	if a.node != nil {
		g.Ring(a.nodeParts()...)
	}
	if a.exec != nil {
		g.Ring(a.exec.Parts()...)
	}
	if a.fleet != nil {
		g.Ring(lifecycle.Part{Name: "fleet", Run: a.fleet.Run})
	}
	if pushed := a.pushed(); pushed.Enabled() {
		push := statsd.New(pushed, statsd.Deps{Readings: a.metrics.Readings, Clock: a.deps.Clock, Log: a.deps.Log.With("part", "telemetry")})
		g.Ring(lifecycle.Part{Name: "telemetry", Run: push.Run})
	}
	g.Ring(a.httpPart())
	if a.dns != nil {
		g.Ring(lifecycle.Part{Name: "dns", Run: a.dns.Run})
	}
	ctx, stop := a.departure().Context(ctx)
	defer stop()
	return g.Run(ctx)
}

// departure is how this agent goes.
func (a *Agent) departure() departure.Departure {
	d := departure.Departure{Config: a.cfg, Log: a.deps.Log}
	if a.control != nil && a.control.servers.Clustered() {
		d.Cluster = a.control.servers
	}
	if a.node != nil {
		d.Node = a.node.agent
	}
	return d
}

// pushed is who gets metrics without asking.
func (a *Agent) pushed() statsd.Config {
	host, _ := os.Hostname() // without a name there is none in the names of gauges
	return a.cfg.Pushed(host)
}

// close gives back what New took: listeners, the log, and last the lock on the data folder.
func (a *Agent) close() {
	a.told.Close()
	for _, l := range []net.Listener{a.http, a.rpc} {
		if l != nil {
			_ = l.Close()
		}
	}
	a.dns.Close()
	if a.relay != nil {
		a.relay.Close()
	}
	if a.control != nil {
		a.control.close()
	}
	if a.audit != nil {
		a.audit.Close()
	}
	if a.folder != nil {
		if err := a.folder.Close(); err != nil {
			a.deps.Log.Warn("stopping", "error", err)
		}
	}
}
