package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/demand"
	"github.com/drover-project/drover/internal/fleet/keeper"
	"github.com/drover-project/drover/internal/fleet/meters"
	"github.com/drover-project/drover/internal/fleet/office"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/tables"
)

// fleetPlane are what buys and returns machines, and what operators ask of it.
type fleetPlane struct {
	control *control
	clock   clock.Clock
	keeper  *keeper.Keeper
	office  *office.Office
	meters  *meters.Meters
}

// pricesEvery is how often a cloud is asked for its prices unless the configuration says otherwise: spot prices change a
// few times a day.
const pricesEvery = 15 * time.Minute

// openFleet makes the fleet of the configuration; without one, machines can still be bought by pools of the API.
// Nothing is asked of a cloud before the keeper runs, on the leading server only. Errors: Invalid for a pool or an
// authority.
func (a *Agent) openFleet() (*fleetPlane, error) {
	cfg := a.cfg.Fleet
	if cfg == nil {
		cfg = &config.Fleet{}
	}
	f := &fleetPlane{control: a.control, clock: a.deps.Clock, meters: meters.New(a.metrics, a.deps.Clock)}
	keep := keeper.Config{Owner: cfg.Owner, Datacenter: a.cfg.Datacenter, Forgetful: a.forgetful()}
	var err error
	if keep.Home, err = machineHome(a.cfg, serverAddress(a)); err != nil {
		return nil, err
	}
	if cfg.Server == "" {
		keep.Servers = a.control.servers.Addresses
	}
	for _, p := range cfg.Pools {
		policy, err := p.Policy()
		if err != nil {
			return nil, err
		}
		keep.Pools = append(keep.Pools, policy)
	}
	folder := filepath.Join(a.dataDir, "fleet")
	// Without a folder the audit log is kept in memory.
	if a.forgetful() {
		folder = ""
	}
	audit, err := office.OpenAudit(folder, a.deps.Clock)
	if err != nil {
		return nil, err
	}
	regions := map[string]string{}
	for _, p := range cfg.Providers {
		regions[p.Name] = p.Region
		keep.Providers = append(keep.Providers, keeper.Provider{
			Name: p.Name, Kind: p.Kind(), Setting: p.Setting(), PriceEvery: config.Duration(p.PriceEvery, pricesEvery),
			Attributes: localAttributes(p),
			Open:       func(owner string) (provider.Provider, error) { return openProvider(p, owner, a.dataDir, a.deps.Clock) },
		})
	}
	// From here on the meters hear of every placement, for the time from demand to place.
	a.control.view.Listen(f.meters.Placed)
	f.keeper = keeper.New(keep, keeper.Deps{
		State: func() keeper.State { return a.control.store.Snapshot() },
		Log:   fleetLog{a.control}, Changes: fleetLog{a.control}, Nodes: fleetNodes{a.control},
		View: a.control.view, Audit: audit, Meters: f.meters, Clock: a.deps.Clock, IDs: a.deps.IDs, Logger: a.deps.Log,
	})
	f.office = office.New(office.Deps{
		State: func() office.State { return a.control.store.Snapshot() },
		Log:   fleetLog{a.control}, Loops: f.keeper, Audit: audit, Clock: a.deps.Clock, Regions: regions,
	})
	a.metrics.Source(f.keeper.Gauges)
	return f, nil
}

// parts are the fleet's loops.
func (f *fleetPlane) parts() []lifecycle.Part {
	return []lifecycle.Part{{Name: "fleet", Run: f.keeper.Run}}
}

// machineHome is what machines are told of the server at this address. Errors: Invalid for an authority that can't be read.
func machineHome(cfg *config.Agent, server string) (bootstrap.Home, error) {
	authority, err := machineAuthority(cfg.TLS)
	return bootstrap.Home{Server: server, Authority: authority, Datacenter: config.Default().Datacenter}, err
}

// demandConfig is what the fleet's view of the demand has to know of agents and providers.
func (a *Agent) demandConfig() demand.Config {
	local := map[string]bool{}
	if a.cfg.Fleet != nil {
		for _, p := range a.cfg.Fleet.Providers {
			local[p.Name] = p.Kind() != provider.KindEC2
		}
	}
	return demand.Config{
		BrokenAttribute: machine.AttributeBroken, InterruptedAttribute: machine.AttributeInterrupted,
		Local: func(provider string) bool { return local[provider] },
	}
}

// serverAddress is what new machines dial: fleet.server, else advertise.rpc, else where this process listens.
func serverAddress(a *Agent) string {
	if a.cfg.Fleet != nil && a.cfg.Fleet.Server != "" {
		return a.cfg.Fleet.Server
	}
	if adv := a.cfg.Advertise; adv != nil && adv.RPC != "" {
		return withPort(adv.RPC, a.rpc)
	}
	return a.RPCAddr()
}

// fleetLog is the raft log as the fleet writes it, and the state's changes as it follows them.
type fleetLog struct{ *control }

// IsLeader implements keeper.Log.
func (l fleetLog) IsLeader() bool { return l.log.IsLeader() }

// Follow implements keeper.Log.
func (l fleetLog) Follow(ctx context.Context, lead func(context.Context)) { l.log.Follow(ctx, lead) }

// Barrier implements keeper.Log.
func (l fleetLog) Barrier(ctx context.Context) error { return l.log.Barrier(ctx) }

// InitFleet implements keeper.Log.
func (l fleetLog) InitFleet(ctx context.Context, identity fleet.Identity) error {
	return l.propose(ctx, &command.InitFleet{Identity: identity})
}

// PutPools implements office.Log.
func (l fleetLog) PutPools(ctx context.Context, pools []*fleet.Pool) error {
	return l.propose(ctx, &command.PutFleetPools{Pools: pools})
}

// DeletePools implements keeper.Log.
func (l fleetLog) DeletePools(ctx context.Context, names []string) error {
	return l.propose(ctx, &command.DeleteFleetPools{Names: names})
}

// Update implements keeper.Log.
func (l fleetLog) Update(ctx context.Context, u keeper.Update) error {
	return l.propose(ctx, &command.UpdateFleet{Put: u.Put, Costs: u.Costs, Learned: u.Learned, Forget: u.Forget})
}

// propose writes a command whose result does not matter.
func (l fleetLog) propose(ctx context.Context, c command.Command) error {
	_, _, err := l.log.Propose(ctx, c)
	return err
}

// Pools implements keeper.Changes.
func (l fleetLog) Pools() (uint64, <-chan struct{}) {
	changed := l.store.Watch(tables.FleetPools, "")
	return l.store.Snapshot().TableIndex(tables.FleetPools), changed
}

// Machines implements keeper.Changes.
func (l fleetLog) Machines() <-chan struct{} { return l.store.Watch(tables.FleetInstances, "") }

// fleetNodes are the nodes as the fleet steers them.
type fleetNodes struct{ *control }

// byFleet marks what the fleet did to a node.
func byFleet() map[string]string { return map[string]string{"by": "fleet"} }

// Drain implements keeper.Nodes.
func (n fleetNodes) Drain(ctx context.Context, node string, within time.Duration) error {
	spec := &drover.DrainSpec{IgnoreSystemJobs: true, MoveBatch: true, Deadline: within} // nobody who knows the work decided to end it
	_, err := n.intake.DrainNode(ctx, drover.DrainRequest{NodeID: node, Spec: spec, Meta: byFleet()})
	return err
}

// Cordon implements keeper.Nodes.
func (n fleetNodes) Cordon(ctx context.Context, node string) error {
	_, err := n.intake.SetEligibility(ctx, node, drover.NodeIneligible)
	return err
}

// Undrain implements keeper.Nodes.
func (n fleetNodes) Undrain(ctx context.Context, node string) error {
	_, err := n.intake.DrainNode(ctx, drover.DrainRequest{NodeID: node, MarkEligible: true, Meta: byFleet()})
	return err
}

// Forget implements keeper.Nodes.
func (n fleetNodes) Forget(ctx context.Context, node string) error {
	_, err := n.intake.PurgeNode(ctx, node)
	return err
}
