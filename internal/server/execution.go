package server

import (
	"context"
	"os"
	"path/filepath"

	"github.com/drover-project/drover"
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
	"github.com/drover-project/drover/internal/server/servers"
)

// executionService is the execution service of this process.
type executionService struct {
	runners    *runner.Service
	executions *executor.Service
	settings   []*config.EnvSetting
	cluster    *nomadbackend.Backend // nil: runners are kept here
	servers    *servers.Servers
	deps       Deps
}

// openExecution makes the execution service, over this process's control plane or another cluster. A process that
// forgets everything keeps no journal and no ledger. Errors: Invalid for the configuration; the files' own.
func (a *Agent) openExecution() (*executionService, error) {
	journal, ledger := filepath.Join(a.dataDir, "claims.journal"), filepath.Join(a.dataDir, "executions.ledger")
	if a.forgetful() {
		journal, ledger = "", ""
	}
	d, opts := a.deps, environment.Options{NetworkMode: a.cfg.Exec.NetworkMode}
	if opts.NetworkMode != "bridge" && opts.NetworkMode != "host" {
		return nil, drover.Errorf(drover.Invalid, "exec.network_mode %q: want bridge or host", opts.NetworkMode)
	}
	deps, cluster, err := a.poolDeps(opts)
	if err != nil {
		return nil, err
	}
	runners, err := runner.New(runner.Config{JournalPath: journal, MaxWaiting: a.cfg.Exec.QueueLength, Environments: opts}, deps)
	if err != nil {
		return nil, err
	}
	// Results are posted to addresses that users choose: private networks are refused unless they are listed here.
	allow, err := netguard.Networks(a.cfg.Exec.WebhookAllow)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "exec.webhook_allow: %w", err)
	}
	poster := webhook.New(webhook.Config{Allow: allow})
	clustered := a.control.servers.Clustered()
	execDeps := executor.Deps{
		Runners: runners, Notifier: poster, Teller: teller{a.control.intake, clustered}, Clock: d.Clock, IDs: d.IDs,
		Log: d.Log.With("part", "executions"),
	}
	if clustered {
		execDeps.Records = executionRecords{a.control.store, a.control.log}
	}
	executions, err := executor.New(executor.Config{LedgerPath: ledger}, execDeps)
	if err != nil {
		return nil, err
	}
	return &executionService{runners, executions, a.cfg.Exec.Environments, cluster, a.control.servers, d}, nil
}

// parts are the loops of the execution service. They never end by themselves but on an error.
func (x *executionService) parts() []lifecycle.Part {
	parts := []lifecycle.Part{
		{Name: "runners", Run: x.whenLeading(x.runRunners)},
		{Name: "executions", Run: x.whenLeading(x.executions.Run)},
		{Name: "environments", Run: x.whenLeading(x.makeEnvironments)},
	}
	if x.cluster != nil {
		parts = append(parts, lifecycle.Part{Name: "cluster", Run: x.cluster.Run})
	}
	return parts
}

// whenLeading returns a part that begins when this server leads for the first time: who claims and executes is relayed to the
// leader.
func (x *executionService) whenLeading(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			changed := x.servers.Changed()
			if x.servers.Leads() {
				return run(ctx)
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		return nil
	}
}

// makeEnvironments puts those of the configuration, trying again while the log cannot be written.
func (x *executionService) makeEnvironments(ctx context.Context) error {
	for _, s := range x.settings {
		env := execution.Environment{
			ID: s.ID, Image: s.Image, Driver: s.Driver, PoolSize: s.PoolSize, CPU: s.CPU, MemoryMB: s.MemoryMB,
			Network: optional.Value(s.Network),
		}
		for {
			_, err := x.runners.PutEnvironment(ctx, env)
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

// poolIntake is control's intake as the execution service sees it.
type poolIntake struct{ in *intake.Intake }

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
func (p poolIntake) ClaimRunners(ctx context.Context, claims []runner.AllocClaim, demands []runner.Demand) ([]error, error) {
	list := make([]command.RunnerClaim, len(claims))
	for i, c := range claims {
		list[i] = command.RunnerClaim{AllocID: c.AllocID, Claim: c.Claim}
	}
	pools := make([]command.PoolDemand, len(demands))
	for i, d := range demands {
		pools[i] = command.PoolDemand{Namespace: environment.Namespace, JobID: environment.JobID(d.Environment), Demand: d.Runners}
	}
	results, err := p.in.ClaimRunners(ctx, list, pools...)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(results))
	for i, r := range results {
		errs[i] = r.Err
	}
	return errs, nil
}

// ReleaseRunners stops runners.
func (p poolIntake) ReleaseRunners(ctx context.Context, allocIDs []string, reason string) error {
	_, err := p.in.ReleaseRunners(ctx, allocIDs, reason)
	return err
}

// withhold keeps runners that are about to be stopped from being handed out.
func (a *Agent) withhold(ctx context.Context, allocIDs []string) (giveBack func()) {
	if a.exec == nil || a.exec.cluster != nil { // its runners are elsewhere
		return func() {}
	}
	return a.exec.runners.Withhold(ctx, allocIDs)
}
