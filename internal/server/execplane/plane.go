package execplane

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/identity"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/nomadbackend"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/exec/webhook"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/server/lessee"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/internal/telemetry"
)

// Log is what the execution service needs of this server's log.
type Log interface {
	// Follow calls lead whenever this server leads, with a context that ends with the term of office.
	Follow(ctx context.Context, lead func(ctx context.Context))
	// Ready returns once this server, which leads, has all that was acknowledged before it did.
	Ready(ctx context.Context) error
	// Allows reports whether all servers of the cluster know commands of the kind.
	Allows(kind command.Kind) bool
	// Version is the cluster's.
	Version() int
}

// Deps is what a Plane needs of its agent.
type Deps struct {
	Store     *store.Store
	Log       Log
	Servers   *servers.Servers
	Intake    *intake.Intake
	Events    *eventstream.Buffer
	Issuer    *identity.Issuer                                // of the tokens of executions
	Workloads func(nodeID string) (exchange.Workloads, error) // finds those of a node
	Clock     clock.Clock
	IDs       id.Source
	Logger    *slog.Logger

	DataDir   string
	Forgetful bool // nothing is to outlive the process
	Local     bool // this process has a node, and its disk: images that are paths are looked for there
}

// Plane is the execution service of an agent, as faces ask it.
type Plane struct {
	*lessee.Lessee

	cfg       *config.Exec
	deps      Deps
	options   environment.Options
	poster    *webhook.Poster
	cluster   *nomadbackend.Backend // nil: runners are kept here
	directory lessee.Directory      // without one where runners are on another cluster
	history   *telemetry.History
}

// Open makes the execution service, over this process's control plane or another cluster. A process that forgets everything keeps no
// journal and no ledger. Errors: Invalid for the configuration; the files' own.
func Open(agent *config.Agent, d Deps) (*Plane, error) {
	p := &Plane{
		cfg: agent.Exec, deps: d, options: environment.Options{NetworkMode: agent.Exec.NetworkMode, Region: agent.Region},
		history: telemetry.NewHistory(d.Clock),
	}
	if mode := p.options.NetworkMode; mode != "bridge" && mode != "host" {
		return nil, drover.Errorf(drover.Invalid, "exec.network_mode %q: want bridge or host", mode)
	}
	pools, err := p.pools()
	if err != nil {
		return nil, err
	}
	// Results are posted to addresses that users choose: private networks are refused unless they are listed here.
	allow, err := netguard.Networks(p.cfg.WebhookAllow)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "exec.webhook_allow: %w", err)
	}
	p.poster = webhook.New(webhook.Config{Allow: allow})
	ld := p.lessee()
	ld.Open = func(lease, former uint64, holds func() bool) (*lessee.Life, error) {
		return p.open(pools, lease, former, holds)
	}
	if p.Lessee, err = lessee.New(lessee.Config{Server: d.Servers.Self().ID, Journal: p.file("claims.journal")}, ld); err == nil {
		p.directory.Lessee = p.Lessee
		p.Answer(d.Servers.Mux())
	}
	return p, err
}

// file is where something is kept; "" keeps nothing.
func (p *Plane) file(name string) string {
	if p.deps.Forgetful {
		return ""
	}
	return filepath.Join(p.deps.DataDir, name)
}

// pools is where runners are kept: here, or on an existing Nomad cluster.
func (p *Plane) pools() (runner.Deps, error) {
	d := p.deps
	deps := runner.Deps{
		Snapshot:  func() runner.Snapshot { return d.Store.Snapshot() },
		Subscribe: func(index uint64) (runner.Subscription, error) { return execseam.SubscribePools(d.Events, index) },
		Workloads: d.Workloads, Check: p.check, Claimed: p.history.Claimed, Clock: d.Clock, Log: d.Logger.With("part", "runners"),
	}
	if p.cfg.Nomad == nil {
		deps.Live = func(lease uint64) bool { return d.Store.Snapshot().Lessee(lease) != nil }
		return deps, nil
	}
	b, err := nomadbackend.New(nomadbackend.Config{Cluster: nomadbackend.Cluster(*p.cfg.Nomad), Environments: p.options}, nomadbackend.Deps{
		Clock: d.Clock, IDs: d.IDs, Log: d.Logger.With("part", "nomad"),
	})
	if err != nil {
		return deps, err
	}
	p.cluster = b
	deps.Snapshot, deps.Subscribe, deps.Intake, deps.Workloads, deps.Check = b.Snapshot, b.Subscribe, b, b.Workloads, nil
	return deps, nil
}

// lessee is what leases of runners are made with. Where runners are on another cluster there are none.
func (p *Plane) lessee() lessee.Deps {
	d := p.deps
	out := lessee.Deps{Leads: d.Servers.Leads, Clock: d.Clock, Log: d.Logger.With("part", "execution")}
	if d.Servers.Clustered() {
		out.Lead = d.Log.Follow
	}
	if p.cluster != nil {
		out.Ready = p.cluster.Await
		return out
	}
	p.directory = lessee.Directory{Store: d.Store, Network: lessee.Network{Servers: d.Servers}}
	out.Peers, out.Owner, out.IDs = p.directory.Network, p.directory.Keeper, d.IDs
	out.Record = func(lease uint64) runner.Intake { return execseam.Intake{In: d.Intake, Lease: lease} }
	out.Lessees = func() []*cluster.Lessee { return slices.Collect(d.Store.Snapshot().Lessees()) }
	out.Changed = func() <-chan struct{} { return d.Store.Watch(tables.Lessees, "") }
	out.Intake, out.Reach, out.Linearize, out.Keeps = d.Intake, d.Servers.Reach, d.Servers.Linearize, p.directory.Keeps
	out.Unclaimed = p.unclaimed
	out.Shares = func() bool { return d.Log.Allows(command.KindBeginIncarnation) }
	out.Raised = func() <-chan struct{} { return d.Store.Watch(tables.Cluster, "") }
	return out
}

// open makes the service of one incarnation of this server; lease 0 is that of a server that is alone.
func (p *Plane) open(pools runner.Deps, lease, former uint64, holds func() bool) (*lessee.Life, error) {
	d, several := p.deps, p.deps.Servers.Clustered()
	if pools.Holds = holds; p.cluster == nil {
		pools.Intake = execseam.Intake{In: d.Intake, Lease: lease}
	}
	runners, err := runner.New(runner.Config{
		JournalPath: p.file("claims.journal"), Lease: lease, Former: former, MaxWaiting: p.cfg.QueueLength, Environments: p.options,
		Sure: lease == 0 && p.cluster == nil && several,
	}, pools)
	if err != nil {
		return nil, err
	}
	xd := executor.Deps{
		Runners: runners, Keeping: runners, Notifier: p.poster,
		Teller:     execseam.Teller{Intake: d.Intake, Keeps: func() bool { return several && d.Log.Allows(command.KindRecordExecutions) }},
		Slots:      execseam.Slots{Intake: d.Intake, Store: d.Store, Clock: d.Clock},
		Identities: d.Issuer, Started: p.history.Started, Wrote: p.history.Wrote,
		Clock: d.Clock, IDs: d.IDs, Log: d.Logger.With("part", "executions"),
	}
	if several {
		xd.Records = execseam.Records{Store: d.Store, Log: d.Log}
	}
	executions, err := executor.New(executor.Config{LedgerPath: p.file("executions.ledger"), Lease: lease}, xd)
	return &lessee.Life{Runners: runners, Executions: executions}, err
}

// SelectExecutions lists executions: of all servers, where each has some.
func (p *Plane) SelectExecutions(
	ctx context.Context, q execution.ListQuery, sees func(namespace string) bool,
) (execution.ListPage, error) {
	if p.cluster != nil {
		return p.Lessee.SelectExecutions(ctx, q, sees)
	}
	return p.directory.SelectExecutions(ctx, q, sees)
}

// Owner is the server that answers for claims of an environment, for a runner or for an execution; "" is the leader. Errors:
// lessee.Directory's.
func (p *Plane) Owner(ctx context.Context, place httpapi.Place, key string) (string, error) {
	if p.cluster != nil { // at the leader only
		return "", nil
	}
	return p.directory.Owner(ctx, place, key)
}

// Withhold is the Lessee's: it keeps runners that are about to be stopped from being handed out, until giveBack is called. Where runners
// are on another cluster, nobody hands out those here. Errors: Unavailable, also before the plane is open.
func (p *Plane) Withhold(ctx context.Context, allocIDs []string) (leases []uint64, giveBack func(settled bool), err error) {
	switch {
	case p == nil: // other servers may be leased some
		return nil, nil, drover.Errorf(drover.Unavailable, "the execution service has not begun")
	case p.cluster != nil:
		return nil, func(bool) {}, nil
	}
	return p.Lessee.Withhold(ctx, allocIDs)
}

// History is how pools stood, and what was claimed and executed.
func (p *Plane) History() *telemetry.History { return p.history }

// Parts are the loops of the execution service. They never end by themselves but on an error.
func (p *Plane) Parts() []lifecycle.Part {
	parts := []lifecycle.Part{
		{Name: "execution", Run: p.Run}, {Name: "environments", Run: p.runEnvironments}, {Name: "history", Run: p.runHistory},
	}
	if p.cluster != nil {
		parts = append(parts, lifecycle.Part{Name: "cluster", Run: p.cluster.Run})
	}
	return parts
}

// runHistory samples how pools stand, until ctx ends.
func (p *Plane) runHistory(ctx context.Context) error {
	for ok := true; ok; ok = clock.Sleep(ctx, p.deps.Clock, telemetry.HistoryStep) {
		sample, cancel := p.deps.Clock.WithTimeout(ctx, telemetry.HistoryStep)
		if pools, err := p.Pools(sample); err == nil { // else that time is not known
			p.history.Sample(pools)
		}
		cancel()
	}
	return nil
}

// unclaimed are the runners that the state has as warm and leased to nobody.
func (p *Plane) unclaimed() (allocIDs []string) {
	s := p.deps.Store.Snapshot()
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
