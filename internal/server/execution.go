package server

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/nomadbackend"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/exec/webhook"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/server/lessee"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/internal/telemetry"
)

// executionService is the execution service of this process.
type executionService struct {
	*lessee.Lessee
	settings []*config.EnvSetting
	cluster  *nomadbackend.Backend // nil: runners are kept here
	lead     func(ctx context.Context, term func(ctx context.Context))

	directory lessee.Directory
	deps      Deps
	history   *telemetry.History
}

// openExecution makes the execution service, over this process's control plane or another cluster. A process that
// forgets everything keeps no journal and no ledger. Errors: Invalid for the configuration; the files' own.
func (a *Agent) openExecution() (*executionService, error) {
	journal, ledger := filepath.Join(a.dataDir, "claims.journal"), filepath.Join(a.dataDir, "executions.ledger")
	if a.forgetful() {
		journal, ledger = "", ""
	}
	c, d, opts := a.control, a.deps, environment.Options{NetworkMode: a.cfg.Exec.NetworkMode, Region: a.cfg.Region}
	if opts.NetworkMode != "bridge" && opts.NetworkMode != "host" {
		return nil, drover.Errorf(drover.Invalid, "exec.network_mode %q: want bridge or host", opts.NetworkMode)
	}
	deps, backend, err := a.poolDeps(opts)
	if err != nil {
		return nil, err
	}
	// Results are posted to addresses that users choose: private networks are refused unless they are listed here.
	allow, err := netguard.Networks(a.cfg.Exec.WebhookAllow)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "exec.webhook_allow: %w", err)
	}
	poster := webhook.New(webhook.Config{Allow: allow})
	keeps := func() bool { return c.servers.Clustered() && c.log.Allows(command.KindRecordExecutions) }
	x := &executionService{settings: a.cfg.Exec.Environments, cluster: backend, deps: d, history: telemetry.NewHistory(d.Clock)}
	ld := lessee.Deps{Leads: c.servers.Leads, Clock: d.Clock, Log: d.Log.With("part", "execution")}
	if c.servers.Clustered() {
		x.lead, ld.Lead = c.log.Follow, c.log.Follow
	}
	if backend != nil {
		ld.Ready = backend.Await
	} else {
		x.directory = lessee.Directory{Store: c.store, Network: lessee.Network{Servers: c.servers}}
		ld.Peers, ld.Owner, ld.IDs = x.directory.Network, x.directory.Keeper, d.IDs
		ld.Record = func(lease uint64) runner.Intake { return execseam.Intake{In: c.intake, Lease: lease} }
		ld.Lessees = func() []*cluster.Lessee { return slices.Collect(c.store.Snapshot().Lessees()) }
		ld.Changed = func() <-chan struct{} { return c.store.Watch(tables.Lessees, "") }
		ld.Intake, ld.Reach, ld.Keeps = c.intake, c.reach, x.directory.Keeps
		ld.Unclaimed = c.unclaimed
		ld.Shares = func() bool { return c.log.Allows(command.KindBeginIncarnation) }
		ld.Raised = func() <-chan struct{} { return c.store.Watch(tables.Cluster, "") }
	}
	ld.Open = func(lease, former uint64, holds func() bool) (*lessee.Life, error) {
		deps := deps
		deps.Claimed = x.history.Claimed
		if deps.Holds = holds; backend == nil {
			deps.Intake = execseam.Intake{In: c.intake, Lease: lease}
			deps.Live = func(lease uint64) bool { return c.store.Snapshot().Lessee(lease) != nil }
		}
		rc := runner.Config{
			JournalPath: journal, Lease: lease, Former: former, MaxWaiting: a.cfg.Exec.QueueLength, Environments: opts,
			Sure: lease == 0 && backend == nil && c.servers.Clustered(),
		}
		runners, err := runner.New(rc, deps)
		if err != nil {
			return nil, err
		}
		xd := executor.Deps{
			Runners: runners, Keeping: runners, Notifier: poster, Teller: execseam.Teller{Intake: c.intake, Keeps: keeps},
			Slots:      execseam.Slots{Intake: c.intake, Store: c.store, Clock: d.Clock},
			Identities: c.issuer, Started: x.history.Started, Clock: d.Clock, IDs: d.IDs, Log: d.Log.With("part", "executions"),
		}
		if c.servers.Clustered() {
			xd.Records = execseam.Records{Store: c.store, Log: c.log}
		}
		executions, err := executor.New(executor.Config{LedgerPath: ledger, Lease: lease}, xd)
		return &lessee.Life{Runners: runners, Executions: executions}, err
	}
	if x.Lessee, err = lessee.New(lessee.Config{Server: c.servers.Self().ID, Journal: journal}, ld); err == nil {
		x.directory.Lessee = x.Lessee
		x.Answer(c.servers.Mux())
	}
	return x, err
}

// SelectExecutions lists executions: of all servers, where each has some.
func (x *executionService) SelectExecutions(
	ctx context.Context, q execution.ListQuery, sees func(namespace string) bool,
) (execution.ListPage, error) {
	if x.cluster != nil {
		return x.Lessee.SelectExecutions(ctx, q, sees)
	}
	return x.directory.SelectExecutions(ctx, q, sees)
}

// parts are the loops of the execution service. They never end by themselves but on an error.
func (x *executionService) parts() []lifecycle.Part {
	parts := []lifecycle.Part{
		{Name: "execution", Run: x.Run}, {Name: "environments", Run: x.runEnvironments}, {Name: "history", Run: x.runHistory},
	}
	if x.cluster != nil {
		parts = append(parts, lifecycle.Part{Name: "cluster", Run: x.cluster.Run})
	}
	return parts
}

// runHistory samples how pools stand, until ctx ends.
func (x *executionService) runHistory(ctx context.Context) error {
	for ok := true; ok; ok = clock.Sleep(ctx, x.deps.Clock, telemetry.HistoryStep) {
		sample, cancel := x.deps.Clock.WithTimeout(ctx, telemetry.HistoryStep)
		if pools, err := x.Pools(sample); err == nil { // else that time is not known
			x.history.Sample(pools)
		}
		cancel()
	}
	return nil
}

// runEnvironments makes the configured environments, of several servers at the one that leads. Errors: Invalid for one of them.
func (x *executionService) runEnvironments(ctx context.Context) error {
	if x.lead == nil {
		return x.makeEnvironments(ctx)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x.lead(ctx, func(term context.Context) {
		if err := x.makeEnvironments(term); err != nil {
			stop(err)
		}
	})
	return context.Cause(ctx)
}

// makeEnvironments puts those of the configuration, trying again while the log cannot be written.
func (x *executionService) makeEnvironments(ctx context.Context) error {
	for _, s := range x.settings {
		env := execution.Environment{
			ID: s.ID, Image: s.Image, Driver: s.Driver, PoolSize: s.PoolSize, CPU: s.CPU, MemoryMB: s.MemoryMB,
			Network: optional.Value(s.Network),
		}
		for {
			_, err := x.PutEnvironment(ctx, env)
			if err == nil || ctx.Err() != nil {
				break
			}
			// An environment that is wrong does not become right by waiting: the agent stops with the error.
			if drover.CodeOf(err) == drover.Invalid {
				return err
			}
			x.deps.Log.Warn("making a configured environment", "environment", s.ID, "error", err)
			clock.Sleep(ctx, x.deps.Clock, msec(1000))
		}
	}
	<-ctx.Done()
	return nil
}

// unclaimed are the runners that the state has as warm and leased to nobody.
func (c *control) unclaimed() (allocIDs []string) {
	s := c.store.Snapshot()
	for j := range s.Jobs("*", "") {
		if !slices.ContainsFunc(j.TaskGroups, func(g *drover.TaskGroup) bool { return g.Pool != nil }) {
			continue
		}
		for a := range s.ActiveAllocationsByJob(j.Namespace, j.ID) {
			if a.Claim == nil && a.Lease == 0 && a.ClientStatus == drover.AllocClientRunning && !a.Terminal() {
				allocIDs = append(allocIDs, a.ID)
			}
		}
	}
	return allocIDs
}

// environmentsInNamespaces is the cluster version from which all servers keep environments of several namespaces apart.
const environmentsInNamespaces = 3

// checkEnvironment says at once when an image is a path that does not exist, if this process has the only node's disk, and when a server
// would not know an environment of another namespace than the default.
func (a *Agent) checkEnvironment(_ context.Context, env execution.Environment) error {
	if v := a.control.log.Version(); env.Namespace != "" && v < environmentsInNamespaces {
		return drover.Errorf(drover.Unavailable, "namespace %q: environments in other namespaces than default need cluster version %d, "+
			"this one has %d", env.Namespace, environmentsInNamespaces, v)
	}
	if a.node == nil || !filepath.IsAbs(env.Image) {
		return nil
	}
	if _, err := os.Stat(env.Image); err != nil {
		return drover.Errorf(drover.Invalid, "image: %w", err)
	}
	return nil
}

// withhold keeps runners that are about to be stopped from being handed out.
func (a *Agent) withhold(ctx context.Context, allocIDs []string) (giveBack func(), err error) {
	if a.exec == nil || a.exec.cluster != nil { // its runners are elsewhere
		return func() {}, nil
	}
	return a.exec.Withhold(ctx, allocIDs)
}
