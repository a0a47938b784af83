package fleetplane

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/machines"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/demand"
	"github.com/drover-project/drover/internal/fleet/keeper"
	"github.com/drover-project/drover/internal/fleet/meters"
	"github.com/drover-project/drover/internal/fleet/office"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/telemetry"
)

// Log is what the control plane keeps. Propose's result does not matter here.
type Log interface {
	IsLeader() bool
	// Follow calls lead whenever this server leads, with a context that ends with the term of office.
	Follow(ctx context.Context, lead func(ctx context.Context))
	// Barrier returns once the state has all that was written before the call. Errors: NotLeader.
	Barrier(ctx context.Context) error
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Intake is what the fleet asks of the control plane about nodes.
type Intake interface {
	DrainNode(ctx context.Context, r drover.DrainRequest) (drover.Outcome, error)
	SetEligibility(ctx context.Context, nodeID, eligibility string) (drover.Outcome, error)
	PurgeNode(ctx context.Context, nodeID string) (drover.Outcome, error)
}

// Deps is what a Plane needs of its agent.
type Deps struct {
	Store   *store.Store
	Log     Log
	Intake  Intake
	View    *demand.View                  // of what waits for machines
	Servers *servers.Servers              // whose addresses machines may dial, and each of which has a part of the audit log
	Again   func() (*config.Agent, error) // reads the configuration again; nil if that cannot be
	Metrics *telemetry.Metrics
	Clock   clock.Clock
	IDs     id.Source
	Logger  *slog.Logger

	DataDir   string
	Forgetful bool   // nothing is to outlive the process
	Address   string // that new machines dial
}

// Plane are what buys and returns machines, and what operators ask of it.
type Plane struct {
	deps   Deps
	agent  *config.Agent
	keeper *keeper.Keeper
	office *office.Office
	meters *meters.Meters
}

// pricesEvery is how often a cloud is asked for its prices unless the configuration says otherwise: spot prices change a
// few times a day.
const pricesEvery = 15 * time.Minute

// Open makes the fleet of the configuration; without one, machines can still be bought by pools of the API.
// Nothing is asked of a cloud before the keeper runs, on the leading server only. Errors: Invalid for a pool or an
// authority.
func Open(agent *config.Agent, d Deps) (*Plane, error) {
	cfg := agent.Fleet
	if cfg == nil {
		cfg = &machines.Fleet{}
	}
	f := &Plane{deps: d, agent: agent, meters: meters.New(d.Metrics, d.Clock)}
	keep := keeper.Config{Owner: cfg.Owner, Datacenter: agent.Datacenter, Forgetful: d.Forgetful, Several: d.Servers.Clustered()}
	var err error
	if keep.Home, err = machineHome(agent, d.Address); err != nil {
		return nil, err
	}
	if cfg.Server == "" {
		keep.Servers = d.Servers.Addresses
	}
	if keep.Pools, err = configuredPools(agent); err != nil {
		return nil, err
	}
	folder := filepath.Join(d.DataDir, "fleet")
	// Without a folder the audit log is kept in memory.
	if d.Forgetful {
		folder = ""
	}
	audit, err := office.OpenAudit(folder, d.Clock)
	if err != nil {
		return nil, err
	}
	regions := map[string]string{}
	for _, p := range cfg.Providers {
		regions[p.Name] = p.Region
		keep.Providers = append(keep.Providers, keeper.Provider{
			Name: p.Name, Kind: p.Kind(), Setting: p.Setting(), PriceEvery: config.Duration(p.PriceEvery, pricesEvery),
			Attributes: localAttributes(p),
			Open: func(owner string, others []string) (provider.Provider, error) {
				return openProvider(p, owner, others, d.DataDir, d.Clock)
			},
		})
	}
	// From here on the meters hear of every placement, for the time from demand to place.
	d.View.Listen(f.meters.Placed)
	log := commands{d.Log, d.Servers, d.Store}
	f.keeper = keeper.New(keep, keeper.Deps{
		State: func() keeper.State { return d.Store.Snapshot() },
		Log:   log, Changes: log, Nodes: nodes{d.Intake},
		View: d.View, Audit: audit, Meters: f.meters, Clock: d.Clock, IDs: d.IDs, Logger: d.Logger,
	})
	f.office = office.New(office.Deps{
		State: func() office.State { return d.Store.Snapshot() },
		Log:   log, Loops: f.keeper, Audit: audit, Clock: d.Clock, Regions: regions,
		Server: d.Servers.Member().FullName(), Configured: f.configured, Others: f.otherAudits(),
	})
	peercall.Handle(d.Servers.Mux(), procFleetAudit, func(_ context.Context, _ string, q office.AuditQuery) ([]fleet.Audit, error) {
		return f.office.OwnAudit(q), nil
	})
	d.Metrics.Source(f.keeper.Gauges)
	return f, nil
}

// Office is what operators ask.
func (f *Plane) Office() *office.Office { return f.office }

// Work is what runs on the fleet's machines.
func (f *Plane) Work() Work { return Work{f.deps} }

// Heard notes that a node was heard of.
func (f *Plane) Heard(nodeID string) { f.meters.Heartbeat(nodeID) }

// Run runs the fleet's loops until ctx ends.
func (f *Plane) Run(ctx context.Context) error { return f.keeper.Run(ctx) }

// machineHome is what machines are told of the server at this address. Errors: Invalid for an authority that can't be read.
func machineHome(cfg *config.Agent, server string) (bootstrap.Home, error) {
	authority, err := machineAuthority(cfg.TLS)
	return bootstrap.Home{Server: server, Authority: authority, Datacenter: config.Default().Datacenter}, err
}

// machineAuthority is what machines trust: the authority of the server's certificate; "" without TLS between agents.
func machineAuthority(cfg *config.TLS) (string, error) {
	if cfg == nil || !optional.Value(cfg.RPC) {
		return "", nil
	}
	text, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "tls.ca_file: %w", err)
	}
	return string(text), nil
}

// DemandConfig is what the fleet's view of the demand has to know of agents and providers.
func DemandConfig(cfg *machines.Fleet) demand.Config {
	local := map[string]bool{}
	if cfg != nil {
		for _, p := range cfg.Providers {
			local[p.Name] = p.Kind() != provider.KindEC2
		}
	}
	return demand.Config{
		BrokenAttribute: machine.AttributeBroken, InterruptedAttribute: machine.AttributeInterrupted,
		Local: func(provider string) bool { return local[provider] },
	}
}
