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
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/nomadbackend"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/exec/webhook"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/server/lessee"
	"github.com/drover-project/drover/internal/tables"
)

// executionService is the execution service of this process.
type executionService struct {
	*lessee.Lessee
	settings []*config.EnvSetting
	cluster  *nomadbackend.Backend // nil: runners are kept here
	lead     func(ctx context.Context, term func(ctx context.Context))

	directory lessee.Directory
	deps      Deps
}

// openExecution makes the execution service, over this process's control plane or another cluster. A process that
// forgets everything keeps no journal and no ledger. Errors: Invalid for the configuration; the files' own.
func (a *Agent) openExecution() (*executionService, error) {
	journal, ledger := filepath.Join(a.dataDir, "claims.journal"), filepath.Join(a.dataDir, "executions.ledger")
	if a.forgetful() {
		journal, ledger = "", ""
	}
	c, d, opts := a.control, a.deps, environment.Options{NetworkMode: a.cfg.Exec.NetworkMode}
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
	x := &executionService{settings: a.cfg.Exec.Environments, cluster: backend, deps: d}
	ld := lessee.Deps{Leads: c.servers.Leads, Clock: d.Clock, Log: d.Log.With("part", "execution")}
	if c.servers.Clustered() {
		x.lead, ld.Lead = c.log.Follow, c.log.Follow
	}
	if backend != nil {
		ld.Ready = backend.Await
	} else {
		x.directory = lessee.Directory{Store: c.store, Network: lessee.Network{Servers: c.servers}}
		ld.Peers, ld.Owner, ld.IDs = x.directory.Network, x.directory.Keeper, d.IDs
		ld.Record = func(lease uint64) runner.Intake { return poolIntake{c.intake, lease} }
		ld.Lessees = func() []*cluster.Lessee { return slices.Collect(c.store.Snapshot().Lessees()) }
		ld.Changed = func() <-chan struct{} { return c.store.Watch(tables.Lessees, "") }
		ld.Intake, ld.Reach, ld.Keeps = c.intake, c.reach, x.directory.Keeps
	}
	ld.Open = func(lease, former uint64, holds func() bool) (*lessee.Life, error) {
		deps := deps
		if deps.Holds = holds; backend == nil {
			deps.Intake = poolIntake{c.intake, lease}
			deps.Live = func(lease uint64) bool { return c.store.Snapshot().Lessee(lease) != nil }
		}
		rc := runner.Config{
			JournalPath: journal, Lease: lease, Former: former, MaxWaiting: a.cfg.Exec.QueueLength, Environments: opts,
		}
		runners, err := runner.New(rc, deps)
		if err != nil {
			return nil, err
		}
		xd := executor.Deps{
			Runners: runners, Notifier: poster, Teller: teller{c.intake, keeps}, Clock: d.Clock, IDs: d.IDs,
			Log: d.Log.With("part", "executions"),
		}
		if c.servers.Clustered() {
			xd.Records = executionRecords{c.store, c.log}
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

// parts are the loops of the execution service. They never end by themselves but on an error.
func (x *executionService) parts() []lifecycle.Part {
	parts := []lifecycle.Part{{Name: "execution", Run: x.Run}, {Name: "environments", Run: x.runEnvironments}}
	if x.cluster != nil {
		parts = append(parts, lifecycle.Part{Name: "cluster", Run: x.cluster.Run})
	}
	return parts
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

// checkImage says at once when an image is a path that does not exist, if this process has the only node's disk.
func (a *Agent) checkImage(_ context.Context, env execution.Environment) error {
	if a.node == nil || !filepath.IsAbs(env.Image) {
		return nil
	}
	if _, err := os.Stat(env.Image); err != nil {
		return drover.Errorf(drover.Invalid, "image: %w", err)
	}
	return nil
}

// subscribePools follows all that concerns runners.
func subscribePools(events *eventstream.Buffer, index uint64) (runner.Subscription, error) {
	all := []string{"*"}
	return events.Subscribe(eventstream.Request{
		Topics:    map[string][]string{drover.TopicAllocation: all, drover.TopicJob: all},
		Namespace: "*", Index: index,
	})
}

// poolIntake is control's intake as the execution service sees it, under a lease; 0 is that of a server that is alone.
type poolIntake struct {
	in    *intake.Intake
	lease uint64
}

// RegisterJob registers an environment's job.
func (p poolIntake) RegisterJob(ctx context.Context, job *drover.Job) error {
	_, err := p.in.RegisterJob(ctx, drover.RegisterRequest{Job: job})
	return err
}

// DeregisterJob stops and forgets an environment's job.
func (p poolIntake) DeregisterJob(ctx context.Context, namespace, id string) error {
	_, err := p.in.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: namespace, ID: id, Purge: true})
	return err
}

// ClaimRunners records claims.
func (p poolIntake) ClaimRunners(
	ctx context.Context, claims []runner.AllocClaim, demands []runner.Demand,
) (errs []error, err error) {
	list := make([]command.RunnerClaim, len(claims))
	for i, c := range claims {
		list[i] = command.RunnerClaim{AllocID: c.AllocID, Claim: c.Claim}
	}
	pools := make([]command.PoolDemand, len(demands))
	for i, d := range demands {
		pools[i] = command.PoolDemand{Namespace: environment.Namespace, JobID: environment.JobID(d.Environment), Demand: d.Runners}
	}
	var results []command.ClaimResult
	if p.lease == 0 {
		results, err = p.in.ClaimRunners(ctx, list, pools...)
	} else {
		results, err = p.in.RecordRunners(ctx, p.lease, list, pools...)
	}
	for _, r := range results {
		errs = append(errs, r.Err)
	}
	return errs, err
}

// ReleaseRunners stops runners.
func (p poolIntake) ReleaseRunners(ctx context.Context, allocIDs []string, reason string) error {
	if p.lease != 0 {
		return p.in.ReleaseLeased(ctx, p.lease, allocIDs, reason)
	}
	_, err := p.in.ReleaseRunners(ctx, allocIDs, reason)
	return err
}

// withhold keeps runners that are about to be stopped from being handed out.
func (a *Agent) withhold(ctx context.Context, allocIDs []string) (giveBack func(), err error) {
	if a.exec == nil || a.exec.cluster != nil { // its runners are elsewhere
		return func() {}, nil
	}
	return a.exec.Withhold(ctx, allocIDs)
}
