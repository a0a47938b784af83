package keeper

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// intents is pool.Intents over the log, and pool.Demand and pool.Nodes over the view, for the pools of one provider.
type intents struct {
	*Keeper
	provider string
	began    time.Time // of the term of office
}

// goneKept is how many rows of machines that are gone are kept for people.
const goneKept = 1000

// Load implements pool.Intents.
func (l intents) Load(context.Context) ([]fleet.Durable, error) {
	var list []fleet.Durable
	for i := range l.deps.State().FleetInstances("") {
		if i.State != fleet.InstanceGone && i.Provider == l.provider {
			list = append(list, i.Durable)
		}
	}
	return list, nil
}

// learned is what was learned of the provider's cloud before.
func (l intents) learned() []byte {
	if m := l.deps.State().FleetMemory(l.provider); m != nil {
		return m.Text
	}
	return nil
}

// Record implements pool.Intents: it records that the cloud is about to be asked for the machines.
func (l intents) Record(ctx context.Context, list []fleet.Durable) error {
	c := Update{}
	for _, in := range list {
		in.State, in.StateAt, in.Why, in.Reason = fleet.InstanceCreating, time.Time{}, "recorded", "the cloud is asked for it"
		c.Put = append(c.Put, l.row(in))
	}
	return l.deps.Log.Update(ctx, c)
}

func (l intents) row(d fleet.Durable) *fleet.InstanceRecord {
	d.Provider = l.provider
	return &fleet.InstanceRecord{Durable: d}
}

// Update implements pool.Intents. The nodes of machines that are gone are forgotten: what ran there is lost.
func (l intents) Update(ctx context.Context, u pool.Update) error {
	c := Update{Costs: u.Costs}
	if u.Learned != nil {
		c.Learned = &fleet.Memory{Provider: l.provider, Text: u.Learned}
	}
	if slices.ContainsFunc(u.Changed, func(i fleet.Instance) bool { return i.State == fleet.InstanceGone }) {
		c.Forget = l.surplus()
	}
	for k := range u.Changed {
		c.Put = append(c.Put, l.row(u.Changed[k].Durable))
	}
	before := l.deps.State()
	if err := l.deps.Log.Update(ctx, c); err != nil {
		return err
	}
	for k := range u.Changed {
		if old := before.FleetInstance(u.Changed[k].ID); old == nil || old.State != u.Changed[k].State {
			l.deps.Meters.StateChanged(&u.Changed[k], old)
		}
	}
	s := l.deps.State()
	for k := range u.Changed {
		i := &u.Changed[k]
		if i.State != fleet.InstanceGone || i.NodeID == "" || s.Node(i.NodeID) == nil {
			continue
		}
		if err := l.deps.Nodes.Forget(ctx, i.NodeID); err != nil {
			l.deps.Logger.Warn("forgetting the node of a machine that is gone", "instance", i.ID, "node", i.NodeID, "error", err)
		}
	}
	return nil
}

// surplus returns the oldest rows of machines that are gone, beyond those kept.
func (l intents) surplus() []string {
	var ids []string
	var ends []time.Time
	for i := range l.deps.State().FleetInstances("") {
		if i.State == fleet.InstanceGone {
			ids, ends = append(ids, i.ID), append(ends, i.GoneAt)
		}
	}
	return oldest(ids, ends, len(ids)-goneKept)
}

// Demand implements pool.Demand.
func (l intents) Demand(nodePool string) ([]fleet.DemandClass, <-chan struct{}) {
	return l.deps.View.Demand(nodePool, l.firstNodePool())
}

// Nodes implements pool.Nodes, without those of other providers' machines. Nodes call whoever leads.
func (l intents) Nodes() ([]pool.Node, <-chan struct{}) {
	list, changed := l.deps.View.Nodes()
	for k := range list {
		list[k].Silent = !l.deps.Meters.HeardSince(list[k].ID, l.began)
	}
	if len(l.cfg.Providers) > 1 {
		s := l.deps.State()
		list = slices.DeleteFunc(list, func(n pool.Node) bool {
			i := s.FleetInstance(n.Intent)
			return i != nil && i.Provider != l.provider
		})
	}
	return list, changed
}

// Drain implements pool.Nodes.
func (l intents) Drain(ctx context.Context, node string, deadline time.Time) error {
	n := l.deps.State().Node(node)
	if n == nil || n.DrainStrategy != nil && deadline.IsZero() {
		return nil // it is gone, or drains already
	}
	within := time.Duration(0)
	if !deadline.IsZero() {
		within = max(deadline.Sub(l.deps.Clock.Now()), time.Second)
	}
	return l.deps.Nodes.Drain(ctx, node, within)
}

// Cordon implements pool.Nodes.
func (l intents) Cordon(ctx context.Context, node string) error {
	return l.deps.Nodes.Cordon(ctx, node)
}

// Undrain implements pool.Nodes.
func (l intents) Undrain(ctx context.Context, node string) error {
	return l.deps.Nodes.Undrain(ctx, node)
}

// oldest returns the ids of the n earliest times.
func oldest(ids []string, at []time.Time, n int) []string {
	if n <= 0 {
		return nil
	}
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(at[a].Compare(at[b]), cmp.Compare(ids[a], ids[b])) })
	out := make([]string, n)
	for i := range out {
		out[i] = ids[order[i]]
	}
	return out
}
