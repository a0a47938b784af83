package server

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// fleetLog is pool.Intents over the raft log, and pool.Demand and pool.Nodes over the view, for the pools of one
// provider.
type fleetLog struct {
	*fleetPlane
	provider string
}

// gone rows are kept for people, so many at most.
const goneKept = 1000

// Load implements pool.Intents.
func (l fleetLog) Load(context.Context) ([]pool.Intent, error) {
	var list []pool.Intent
	for i := range l.control.store.Snapshot().FleetInstances("") {
		if i.State != fleet.InstanceGone && i.Provider == l.provider {
			list = append(list, pool.Intent{
				ID: i.ID, Pool: i.Pool, Offering: i.Offering, Template: i.Template, At: i.PlannedAt, Charged: i.Charged, NodeID: i.NodeID,
				Bought: i.Bought, LastError: i.LastError, ReadyAt: i.ReadyAt, IdleAt: i.IdleAt,
				Price: i.Price, RepricedAt: i.RepricedAt, CostBefore: i.CostBefore,
				Behavior: i.Behavior, Answered: i.ProviderID != "", Killed: i.State == fleet.InstanceDestroying && i.Why == pool.WhyKilled,
			})
		}
	}
	return list, nil
}

// learned is what was learned of the provider's cloud before.
func (l fleetLog) learned() []byte {
	if m := l.control.store.Snapshot().FleetMemory(l.provider); m != nil {
		return m.Text
	}
	return nil
}

// Record implements pool.Intents.
func (l fleetLog) Record(ctx context.Context, intents []pool.Intent) error {
	c := &command.UpdateFleet{}
	for _, in := range intents {
		c.Put = append(c.Put, &fleet.InstanceRecord{
			ID: in.ID, Pool: in.Pool, Provider: l.provider, Offering: in.Offering, Template: in.Template, State: fleet.InstanceCreating,
			Behavior: fleet.BehaviorRun, PlannedAt: in.At, Bought: in.Bought, Why: "recorded", Reason: "the cloud is asked for it",
		})
	}
	_, _, err := l.control.log.Propose(ctx, c)
	return err
}

// Update implements pool.Intents. The nodes of machines that are gone are forgotten: what ran there is lost.
func (l fleetLog) Update(ctx context.Context, u pool.Update) error {
	c := &command.UpdateFleet{Costs: u.Costs}
	if u.Learned != nil {
		c.Learned = &fleet.Memory{Provider: l.provider, Text: u.Learned}
	}
	if slices.ContainsFunc(u.Changed, func(i fleet.Instance) bool { return i.State == fleet.InstanceGone }) {
		c.Forget = l.surplus()
	}
	for k := range u.Changed {
		c.Put = append(c.Put, pool.Stored(&u.Changed[k], l.provider))
	}
	before := l.control.store.Snapshot()
	if _, _, err := l.control.log.Propose(ctx, c); err != nil {
		return err
	}
	for k := range u.Changed {
		if old := before.FleetInstance(u.Changed[k].ID); old == nil || old.State != u.Changed[k].State {
			l.meters.came(&u.Changed[k], old)
		}
	}
	s := l.control.store.Snapshot()
	for k := range u.Changed {
		i := &u.Changed[k]
		if i.State != fleet.InstanceGone || i.NodeID == "" || s.Node(i.NodeID) == nil {
			continue
		}
		if _, err := l.control.intake.PurgeNode(ctx, i.NodeID); err != nil {
			l.deps.Log.Warn("forgetting the node of a machine that is gone", "instance", i.ID, "node", i.NodeID, "error", err)
		}
	}
	return nil
}

// surplus returns the oldest rows of machines that are gone, beyond those kept.
func (l fleetLog) surplus() []string {
	var ids []string
	var ends []time.Time
	for i := range l.control.store.Snapshot().FleetInstances("") {
		if i.State == fleet.InstanceGone {
			ids, ends = append(ids, i.ID), append(ends, i.GoneAt)
		}
	}
	return oldest(ids, ends, len(ids)-goneKept)
}

// Demand implements pool.Demand.
func (l fleetLog) Demand(nodePool string) ([]fleet.DemandClass, <-chan struct{}) {
	return l.view.Demand(nodePool, l.firstNodePool())
}

// Nodes implements pool.Nodes, without those of other providers' machines.
func (l fleetLog) Nodes() ([]pool.Node, <-chan struct{}) {
	list, changed := l.view.Nodes()
	if len(l.cfg.Providers) > 1 {
		s := l.control.store.Snapshot()
		list = slices.DeleteFunc(list, func(n pool.Node) bool {
			i := s.FleetInstance(n.Intent)
			return i != nil && i.Provider != l.provider
		})
	}
	return list, changed
}
