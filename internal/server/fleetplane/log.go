package fleetplane

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/fleet/keeper"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/tables"
)

// commands is the log as the fleet writes it, and the state's changes as it follows them.
type commands struct {
	log     Log
	through *servers.Servers // the leader's log, from any server
	state   *store.Store
}

// IsLeader implements keeper.Log.
func (l commands) IsLeader() bool { return l.log.IsLeader() }

// Follow implements keeper.Log.
func (l commands) Follow(ctx context.Context, lead func(context.Context)) { l.log.Follow(ctx, lead) }

// Barrier implements keeper.Log.
func (l commands) Barrier(ctx context.Context) error { return l.log.Barrier(ctx) }

// InitFleet implements keeper.Log.
func (l commands) InitFleet(ctx context.Context, identity fleet.Identity) error {
	return l.propose(ctx, &command.InitFleet{Identity: identity})
}

// NameFleet implements keeper.Log.
func (l commands) NameFleet(ctx context.Context, tag string) error {
	return l.propose(ctx, &command.NameFleet{Tag: tag})
}

// PutPools implements office.Log.
func (l commands) PutPools(ctx context.Context, pools []*fleet.Pool) error {
	return l.propose(ctx, &command.PutFleetPools{Pools: pools})
}

// ApplyPools implements office.Log.
func (l commands) ApplyPools(ctx context.Context, pools []*fleet.Pool, version uint64) error {
	_, _, err := l.through.Propose(ctx, &command.ApplyFleetPools{Pools: pools, Version: version})
	return err
}

// DeletePools implements keeper.Log.
func (l commands) DeletePools(ctx context.Context, names []string) error {
	return l.propose(ctx, &command.DeleteFleetPools{Names: names})
}

// Update implements keeper.Log.
func (l commands) Update(ctx context.Context, u keeper.Update) error {
	return l.propose(ctx, &command.UpdateFleet{Put: u.Put, Costs: u.Costs, Learned: u.Learned, Forget: u.Forget})
}

// propose writes a command whose result does not matter.
func (l commands) propose(ctx context.Context, c command.Command) error {
	_, _, err := l.log.Propose(ctx, c)
	return err
}

// Pools implements keeper.Changes.
func (l commands) Pools() (uint64, <-chan struct{}) {
	changed := l.state.Watch(tables.FleetPools, "")
	return l.state.Snapshot().TableIndex(tables.FleetPools), changed
}

// Machines implements keeper.Changes.
func (l commands) Machines() <-chan struct{} { return l.state.Watch(tables.FleetInstances, "") }

// nodes are the nodes as the fleet steers them.
type nodes struct{ intake Intake }

// byFleet marks what the fleet did to a node.
func byFleet() map[string]string { return map[string]string{"by": "fleet"} }

// Drain implements keeper.Nodes.
func (n nodes) Drain(ctx context.Context, node string, within time.Duration) error {
	spec := &drover.DrainSpec{IgnoreSystemJobs: true, MoveBatch: true, Deadline: within} // nobody who knows the work decided to end it
	_, err := n.intake.DrainNode(ctx, drover.DrainRequest{NodeID: node, Spec: spec, Meta: byFleet()})
	return err
}

// Cordon implements keeper.Nodes.
func (n nodes) Cordon(ctx context.Context, node string) error {
	_, err := n.intake.SetEligibility(ctx, node, drover.NodeIneligible)
	return err
}

// Undrain implements keeper.Nodes.
func (n nodes) Undrain(ctx context.Context, node string) error {
	_, err := n.intake.DrainNode(ctx, drover.DrainRequest{NodeID: node, MarkEligible: true, Meta: byFleet()})
	return err
}

// Forget implements keeper.Nodes.
func (n nodes) Forget(ctx context.Context, node string) error {
	_, err := n.intake.PurgeNode(ctx, node)
	return err
}
