package office

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// Plan decides without doing anything: what would happen now, and why; name "" is all pools. Errors: NotFound, NotLeader,
// Unavailable.
func (o *Office) Plan(ctx context.Context, name string) ([]fleet.Plan, error) {
	plans := []fleet.Plan{}
	err := o.deps.Loops.Each(ctx, func(_ string, now time.Time, c *pool.Core) error {
		for _, policy := range c.Policies() {
			if name != "" && policy.Name != name {
				continue
			}
			in, err := c.Input(now, policy.Name)
			if err != nil {
				return err
			}
			plans = append(plans, planOf(now, c, in, scaler.Decide(in)))
		}
		return nil
	})
	if err == nil && name != "" && len(plans) == 0 {
		if p := o.deps.State().FleetPool(name); p == nil {
			return nil, drover.Errorf(drover.NotFound, "the fleet has no pool %q", name)
		}
		return nil, drover.Errorf(drover.Unavailable, "pool %q: %s", name, o.deps.Loops.Problem(o.deps.State().FleetPool(name).Policy.Provider))
	}
	return plans, err
}

func planOf(now time.Time, c *pool.Core, in scaler.Input, out scaler.Output) fleet.Plan {
	p := fleet.Plan{Pool: in.Policy.Name, At: now.UTC(), Actions: []fleet.Action{}, Deferred: out.Deferred, Settled: in.Settled}
	for k := range out.Actions {
		p.Actions = append(p.Actions, actionOf(&out.Actions[k]))
	}
	p.Waiting = waitingOf(now, c, in.Policy.Name, out.Waiting)
	switch {
	case c.Trouble() != "":
		p.Note = c.Trouble()
	case in.Policy.PauseCreates && in.Policy.PauseDestroys:
		p.Note = "creates and destroys are paused"
	case in.Policy.PauseCreates:
		p.Note = "creates are paused"
	case in.Policy.PauseDestroys:
		p.Note = "destroys are paused"
	case !in.Listed:
		p.Note = "the cloud's machines were not listed yet: nothing is decided before"
	case !in.Settled:
		p.Note = "agents have time to call home until " + c.SettledAt(in.Policy.Name).UTC().Format(time.TimeOnly) + ": nothing is destroyed before"
	default:
		p.Note = c.Failed(now, in.Policy.Name)
	}
	return p
}

func actionOf(a *scaler.Action) fleet.Action {
	out := fleet.Action{Kind: string(a.Kind), Count: a.Count, Instance: a.Instance, Hedge: a.Hedge, Why: a.Why, Reason: a.Reason}
	if a.Offering != nil {
		out.Offering, out.PerHour = a.Offering.Key, a.Offering.Price*float64(a.Count)
	}
	return out
}

// waitingOf completes what the scaler says of waiting work, in the order in which it is served.
func waitingOf(now time.Time, c *pool.Core, name string, list []scaler.Waiting) []fleet.Waiting {
	demand := map[string]fleet.DemandClass{}
	for _, d := range c.Demand(name) {
		demand[d.Name] = d
	}
	ready := c.FirstReady(now, name)
	out := []fleet.Waiting{}
	for _, w := range list {
		d, known := demand[w.Class]
		if !known {
			continue // standby, and work on machines that are taken back
		}
		x := fleet.Waiting{
			Pool: name, Class: w.Class, Each: d.Each, Count: w.Count, Placed: w.Placed, Bought: w.Bought, Priority: d.Priority,
			Since: d.Since.UTC(), Reason: w.Reason,
		}
		if w.Placed > 0 {
			x.ReadyAt = ready
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b fleet.Waiting) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), strings.Compare(a.Class, b.Class))
	})
	for n := range out {
		out[n].Position, out[n].Of = n+1, len(out)
	}
	return out
}

// Waiting Work in node pools without a pool of the fleet is not in it.
func (o *Office) Waiting(ctx context.Context, name string) ([]fleet.Waiting, error) {
	plans, err := o.Plan(ctx, name)
	out := []fleet.Waiting{}
	for _, p := range plans {
		out = append(out, p.Waiting...)
	}
	return out, err
}
