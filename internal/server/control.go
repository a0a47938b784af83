package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/size"
	"github.com/drover-project/drover/internal/control/access"
	"github.com/drover-project/drover/internal/control/archive"
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/identity"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/keyring"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/lookups"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/variables"
	"github.com/drover-project/drover/internal/fleet/demand"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/registry"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/server/fleetplane"
	"github.com/drover-project/drover/internal/server/nodes"
	"github.com/drover-project/drover/internal/server/revoked"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/server/settings"
)

// control is the control plane of this process.
type control struct {
	store     *store.Store
	log       *raftlog.Log
	servers   *servers.Servers
	events    *eventstream.Buffer
	leader    *leader.Leader
	intake    *intake.Intake
	access    *access.Access
	keyring   *keyring.Keyring
	variables *variables.Variables
	issuer    *identity.Issuer                                                    // of signed tokens
	lookups   *lookups.Lookups                                                    // what templates ask
	tokens    httpapi.Resolver                                                    // who has which, as the state says
	tasks     func(alloc *drover.Allocation, task string) (*rights.Caller, error) // what they may do
	front     *nodes.Front                                                        // control as nodes see it
	view      *demand.View
	gate      *gate.Gate
	revoked   *revoked.Guard
	archives  *archive.Archives
	saves     *archive.Schedule // nil: nobody wants it
	logger    *slog.Logger
	joinToken string // that nodes show; "" where they show a certificate of tls.ca_file's authority instead
}

// openControl opens the log and replays it. The state machine is observed by the event stream and by the leader; the
// leader launches periodic jobs through the intake, which needs the log: so the intake is handed over last.
func (a *Agent) openControl(ctx context.Context) (_ *control, err error) {
	cfg, d := a.cfg.Server, a.deps
	maxSource, err := size.Parse(cfg.JobMaxSource, drover.MaxJobSource)
	if err != nil {
		return nil, fmt.Errorf("server.job_max_source_size: %w", err)
	}
	c := &control{store: store.New(), events: eventstream.New(eventstream.Config{MaxEntries: cfg.EventBufferSize}), logger: d.Log}
	if c.joinToken, err = a.joinToken(); err != nil {
		return nil, err
	}
	a.openGate(c)
	a.openRevoked(c)
	if c.servers, err = a.openServers(c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	a.openLeader(c)
	c.view = demand.New(fleetplane.DemandConfig(a.cfg.Fleet), demand.Deps{
		State: func() demand.State { return c.store.Snapshot() }, Now: d.Clock.Now, Lacks: feasible.Lacks,
	})
	// Observers are called while the log is replayed, too.
	machine := fsm.New(c.store, fsm.Observers{c.events, c.leader, c.view})
	logConfig := settings.Log(cfg, a.logFolder())
	if c.servers.Clustered() {
		self := c.servers.Self()
		logConfig.ID, logConfig.Network, logConfig.Advertise, logConfig.Join = self.ID, c.servers.Network(), self.Address, true
	}
	c.log, err = raftlog.Open(logConfig, raftlog.Deps{
		FSM: machine, Fresh: func() *fsm.FSM { return fsm.New(store.New(), nil) }, Log: d.Log.With("part", "raft"), Clock: d.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	judged := a.metrics.Counter("drover.admission.verdicts", "jobs that an admission rule was against, by rule and level", "rule", "level")
	// c.leader already refers to c.intake, in Launch; it is not called before this process leads and runs.
	c.intake = intake.New(intake.Deps{
		Log: c.servers, Store: c.store, Clock: d.Clock, IDs: d.IDs, Collect: c.leader.CollectGarbage, MaxSource: &maxSource,
		Versions: cfg.JobTrackedVersions, MaxCount: cfg.JobMaxCount, MaxPriority: cfg.JobMaxPriority, DefaultPriority: cfg.JobDefaultPriority,
		ServiceProvider: cfg.DefaultServiceProvider, Region: a.cfg.Region,
		Images:         registry.New(registry.Config{Clock: d.Clock}),
		Judged:         func(rule, level string) { judged.WithLabelValues(rule, level).Inc() },
		OwnCertificate: a.ownCertificate,
	})
	if err := a.openKeyring(c); err != nil {
		return nil, err
	}
	a.openArchives(c, machine)
	a.openAccess(ctx, c)
	c.issuer = identity.New(identity.Deps{
		Signer: c.keyring, Store: c.store, Clock: a.deps.Clock, IDs: a.deps.IDs, Issuer: cfg.OIDCIssuer, Region: a.cfg.Region,
	})
	c.lookups = lookups.New(lookups.Deps{Store: c.store, Variables: c.variables, Rights: c.tasks, Clock: a.deps.Clock})
	a.openFront(c)
	if err := c.servers.Open(ctx, c.log); err != nil {
		return nil, err
	}
	if c.servers.Clustered() {
		return c, nil // whoever leads stores the first configuration
	}
	if err := c.log.WaitLeader(ctx); err != nil {
		return nil, fmt.Errorf("waiting for a leader: %w", err)
	}
	if err := c.log.Barrier(ctx); err != nil { // everything acknowledged before a crash is in the state now
		return nil, fmt.Errorf("replaying the log: %w", err)
	}
	return c, c.firstSchedulerConfig(ctx, cfg.SchedulerConfig)
}

// openLeader makes what this server does while it leads. It withholds runners from the execution service, which is opened later.
func (a *Agent) openLeader(c *control) {
	d := a.deps
	c.leader = leader.New(settings.Leader(a.cfg), leader.Deps{
		Store: c.store, Clock: d.Clock, IDs: d.IDs, Logger: d.Log.With("part", "leader"), Samples: a.samples,
		Launch: func(ctx context.Context, namespace, jobID string, at time.Time) error {
			_, err := c.intake.LaunchPeriodic(ctx, namespace, jobID, at)
			return err
		},
		Withhold: func(ctx context.Context, allocIDs []string) (leases []uint64, giveBack func(settled bool), err error) {
			return a.exec.Withhold(ctx, allocIDs)
		},
	})
}

// openFront makes what answers nodes. Only the log of the leader itself takes what they report.
func (a *Agent) openFront(c *control) {
	d := a.deps
	decides := assignment.New(assignment.Deps{
		Log: c.log, Store: c.store, Leader: c.leader, Clock: d.Clock, IDs: d.IDs, Logger: d.Log.With("part", "assignment"),
		Several: c.servers.Clustered(), Touch: func() error { return c.front.Touch() },
	})
	c.front = nodes.New(nodes.Deps{
		Servers: c.servers, Gate: c.gate, Log: c.log, Store: c.store, Clock: d.Clock, Issuer: c.issuer, Looker: c.lookups,
		Workloads: a.workloads,
		Drain: func(ctx context.Context, r drover.DrainRequest) error {
			_, err := c.intake.DrainNode(ctx, r) // it is made before nodes are served
			return err
		},
		Holds:   func(nodeID string) bool { _, err := a.reached(nodeID); return err == nil },
		Logger:  d.Log.With("part", "nodes"),
		Suspect: a.remote.Suspect,
		Control: nodes.Deciding{Controller: decides, Gate: c.gate, Heard: func(nodeID string) { a.fleet.Heard(nodeID) }},
	})
}

// firstSchedulerConfig stores the configured one unless one is stored: from then on the API is where it is changed.
func (c *control) firstSchedulerConfig(ctx context.Context, cfg *config.SchedulerConfig) error {
	if cfg == nil {
		return nil
	}
	if stored := c.store.Snapshot().SchedulerConfig(); stored != nil && stored.ModifyIndex > 0 {
		return nil
	}
	if _, _, err := c.intake.SetSchedulerConfig(ctx, settings.Scheduler(cfg), false); err != nil {
		return fmt.Errorf("server.default_scheduler_config: %w", err)
	}
	return nil
}

// forgetful reports whether nothing is to outlive the process.
func (a *Agent) forgetful() bool { return a.cfg.Dev && a.cfg.DataDir == "" }

// parts of the control plane that run; the log stops after all that uses it.
func (c *control) logPart() lifecycle.Part { return lifecycle.Part{Name: "log", Run: c.log.Run} }

// parts are the loops of the control plane, without the log, which has to stop after everything else.
func (c *control) parts(cfg *config.SchedulerConfig) []lifecycle.Part {
	return append(c.keyringParts(), []lifecycle.Part{
		{Name: "servers", Run: c.servers.Run},
		{Name: "watch of servers", Run: c.front.Watch},
		{Name: "first configuration", Run: func(ctx context.Context) error { return c.configureFirst(ctx, cfg) }},
		{Name: "leader", Run: func(ctx context.Context) error {
			c.log.Follow(ctx, func(term context.Context) { c.leader.Lead(term, c.log) })
			return nil
		}},
		{Name: "tokens", Run: c.collectTokens},
		{Name: "revoked certificates", Run: c.revoked.Run},
		{Name: "revocations", Run: c.forgetRevocations},
		{Name: "secrets of auth methods", Run: c.sealLogins},
		{Name: "archives", Run: func(ctx context.Context) error {
			if c.saves != nil {
				c.log.Follow(ctx, c.saves.Run)
			}
			<-ctx.Done()
			return nil
		}},
	}...)
}

// configureFirst stores the scheduler's first configuration whenever this server begins to lead others.
func (c *control) configureFirst(ctx context.Context, cfg *config.SchedulerConfig) error {
	if cfg != nil && c.servers.Clustered() {
		c.log.Follow(ctx, func(term context.Context) {
			if err := c.firstSchedulerConfig(term, cfg); err != nil {
				c.logger.Warn("storing the first configuration", "error", err)
			}
			<-term.Done()
		})
	}
	<-ctx.Done()
	return nil
}

// close closes the log of a process that does not run, or not any more.
func (c *control) close() {
	c.servers.Close()
	if c.log != nil {
		_ = c.log.Close()
	}
}
