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

// planOf is a decision as the API shows it. Its note says why less is done than the decision wants.
func planOf(now time.Time, c *pool.Core, in scaler.Input, out scaler.Output) fleet.Plan {
	p := fleet.Plan{Pool: in.Policy.Name, At: now.UTC(), Actions: []fleet.Action{}, Deferred: out.Deferred, Settled: in.Settled}
	for k := range out.Actions {
		p.Actions = append(p.Actions, out.Actions[k].Action)
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
		p.Note = "agents have time to call home until " + c.SettledAt(in.Policy.Name).UTC().Format(time.TimeOnly) +
			": nothing is destroyed before"
	default:
		p.Note = cmp.Or(c.Failed(now, in.Policy.Name), out.Lacks)
	}
	return p
}

// waitingOf completes what the scaler says of waiting work, in the order in which it is served. It leaves out standby, and
// work on machines that are taken back.
func waitingOf(now time.Time, c *pool.Core, name string, list []scaler.Waiting) []fleet.Waiting {
	demand := map[string]bool{}
	for _, d := range c.Demand(name) {
		demand[d.Name] = true
	}
	ready := c.FirstReady(now, name)
	out := []fleet.Waiting{}
	for k := range list {
		w := list[k].Waiting
		if !demand[w.Class] {
			continue
		}
		if w.Placed > 0 {
			w.ReadyAt = ready
		}
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b fleet.Waiting) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), strings.Compare(a.Class, b.Class))
	})
	for n := range out {
		out[n].Position, out[n].Of = n+1, len(out)
	}
	return out
}

// Waiting returns the work that waits for machines of a pool; name "" is all pools. Work in node pools without a pool of the
// fleet is not in it. Errors: as Plan.
func (o *Office) Waiting(ctx context.Context, name string) ([]fleet.Waiting, error) {
	plans, err := o.Plan(ctx, name)
	out := []fleet.Waiting{}
	for _, p := range plans {
		out = append(out, p.Waiting...)
	}
	return out, err
}
