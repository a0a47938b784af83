package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// fleetFace is the fleet as its HTTP face sees it.
type fleetFace struct{ *fleet }

// asks is how long an answer of a loop is waited for.
const asks = 10 * time.Second

// each calls do on every loop, in the order of the providers' names. Errors: Unavailable, and do's.
func (f *fleet) each(ctx context.Context, do func(name string, now time.Time, c *pool.Core) error) error {
	ctx, cancel := f.deps.Clock.WithTimeout(ctx, asks)
	defer cancel()
	clouds, err := f.led(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(clouds)) {
		c := clouds[name]
		if c.pool == nil {
			continue
		}
		if err := c.pool.Do(ctx, func(now time.Time, core *pool.Core) error { return do(name, now, core) }); err != nil {
			if drover.CodeOf(err) == drover.Canceled {
				err = drover.Errorf(drover.Unavailable, "the fleet's loop of provider %s does not answer", name)
			}
			return err
		}
	}
	return nil
}

// Pools implements fleet.Fleet of the face.
func (f fleetFace) Pools(ctx context.Context) ([]drover.FleetPoolStatus, error) {
	list := []drover.FleetPoolStatus{}
	at := map[string]int{}
	s := f.control.store.Snapshot()
	now := f.deps.Clock.Now()
	spent := map[string]float64{}
	for c := range s.FleetCosts(now.UTC().Format(time.DateOnly)) {
		spent[c.Pool] += c.Cost
	}
	for p := range s.FleetPools() {
		st := drover.FleetPoolStatus{FleetPool: *p, Machines: map[string]int{}, Today: spent[p.Name], Least: p.Effective().MinAt(now), Waiting: []drover.FleetWaiting{}}
		at[p.Name] = len(list)
		list = append(list, st)
	}
	err := f.each(ctx, func(_ string, now time.Time, c *pool.Core) error {
		for _, policy := range c.Policies() {
			n, ok := at[policy.Name]
			if !ok {
				continue
			}
			for _, i := range c.Instances(policy.Name) {
				list[n].Machines[i.State.String()]++
				list[n].PerHour += i.Price
			}
			list[n].Waiting = waitingOf(now, c, policy.Name, c.Waiting(policy.Name))
			list[n].NextCheck = c.NextCheck(policy.Name)
			list[n].Problem = c.Trouble()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for n := range list {
		list[n].Alert = overBudget(&list[n].Policy.Budget, list[n].PerHour, list[n].Today)
		list[n].Problem = cmp.Or(f.problem(list[n].Policy.Provider), list[n].Problem)
	}
	return list, nil
}

// problem says why a provider can't be used.
func (f *fleet) problem(name string) string {
	clouds := f.clouds.Load()
	if clouds == nil {
		return ""
	}
	c := (*clouds)[name]
	switch {
	case c == nil:
		return fmt.Sprintf("there is no provider %q in the agent's fleet block", name)
	case c.err != nil:
		return c.err.Error()
	}
	return ""
}

// overBudget says by how much a budget is passed: with BudgetAlert, by work of a critical priority, or as it was lowered.
func overBudget(b *drover.FleetBudget, perHour, today float64) string {
	switch {
	case b.PerHour > 0 && perHour > b.PerHour:
		return fmt.Sprintf("costs %s an hour, the budget is %s", drover.Money(perHour), drover.Money(b.PerHour))
	case b.PerDay > 0 && today > b.PerDay:
		return fmt.Sprintf("cost %s today, the budget is %s", drover.Money(today), drover.Money(b.PerDay))
	}
	return ""
}

// region is where the provider buys.
func (f *fleet) region(name string) string {
	for _, p := range f.cfg.Providers {
		if p.Name == name {
			return p.Region
		}
	}
	return ""
}

// Pool implements fleet.Fleet of the face.
func (f fleetFace) Pool(ctx context.Context, name string) (drover.FleetPoolStatus, error) {
	list, err := f.Pools(ctx)
	if err != nil {
		return drover.FleetPoolStatus{}, err
	}
	for _, p := range list {
		if p.Name == name {
			return p, nil
		}
	}
	return drover.FleetPoolStatus{}, drover.Errorf(drover.NotFound, "the fleet has no pool %q", name)
}

// PutPool implements fleet.Fleet of the face.
func (f fleetFace) PutPool(ctx context.Context, policy *drover.FleetPolicy) error {
	policy.Retiring = false // that is what DELETE is for
	policy.Canonicalize()
	if err := policy.Validate(); err != nil {
		return err
	}
	if err := f.each(ctx, func(string, time.Time, *pool.Core) error { return nil }); err != nil {
		return err
	}
	if problem := f.problem(policy.Provider); problem != "" {
		return drover.Errorf(drover.Invalid, "fleet[%s].Provider: %s", policy.Name, problem)
	}
	if region := f.region(policy.Provider); policy.Region != "" && policy.Region != region {
		return drover.Errorf(drover.Invalid, "fleet[%s].Region: is %q, but provider %q has %q: another region is another provider", policy.Name, policy.Region, policy.Provider, region)
	}
	s := f.control.store.Snapshot()
	next := &drover.FleetPool{Name: policy.Name, Policy: policy, Source: drover.FleetSourceAPI}
	if old := s.FleetPool(policy.Name); old != nil {
		if old.Source == drover.FleetSourceConfig && !old.Retiring {
			return drover.Errorf(drover.Conflict, "pool %q is in the agent's configuration: change it there", policy.Name)
		}
		next.PauseCreates, next.PauseDestroys, next.PauseReason = old.PauseCreates, old.PauseDestroys, old.PauseReason
	}
	if _, _, err := f.control.log.Propose(ctx, &command.PutFleetPools{Pools: []*drover.FleetPool{next}}); err != nil {
		return err
	}
	f.audit.add(pool.Entry{Pool: policy.Name, What: "put", Why: "operator", Reason: "the pool was set over the API"})
	return nil
}

// change stores a changed copy of a pool. Errors: NotFound.
func (f *fleet) change(ctx context.Context, name string, do func(*drover.FleetPool) error) error {
	old := f.control.store.Snapshot().FleetPool(name)
	if old == nil {
		return drover.Errorf(drover.NotFound, "the fleet has no pool %q", name)
	}
	next := *old
	if err := do(&next); err != nil {
		return err
	}
	_, _, err := f.control.log.Propose(ctx, &command.PutFleetPools{Pools: []*drover.FleetPool{&next}})
	return err
}

// DeletePool implements fleet.Fleet of the face: the pool is gone once its last machine is.
func (f fleetFace) DeletePool(ctx context.Context, name string) error {
	err := f.change(ctx, name, func(p *drover.FleetPool) error {
		if p.Source == drover.FleetSourceConfig && !p.Retiring {
			return drover.Errorf(drover.Conflict, "pool %q is in the agent's configuration: remove it there", name)
		}
		p.Retiring = true
		return nil
	})
	if err == nil {
		f.audit.add(pool.Entry{Pool: name, What: "delete", Why: "operator", Reason: "machines go as they become idle"})
	}
	return err
}

// Pause implements fleet.Fleet of the face.
func (f fleetFace) Pause(ctx context.Context, name string, pause drover.FleetPause) error {
	err := f.change(ctx, name, func(p *drover.FleetPool) error {
		p.PauseCreates, p.PauseDestroys, p.PauseReason = pause.Creates, pause.Destroys, pause.Reason
		return nil
	})
	if err == nil {
		what := "resume"
		if pause.Creates || pause.Destroys {
			what = fmt.Sprintf("pause creates=%t destroys=%t", pause.Creates, pause.Destroys)
		}
		f.audit.add(pool.Entry{Pool: name, What: what, Why: "operator", Reason: pause.Reason})
	}
	return err
}

// Plan implements fleet.Fleet of the face.
func (f fleetFace) Plan(ctx context.Context, name string) ([]drover.FleetPlan, error) {
	plans := []drover.FleetPlan{}
	err := f.each(ctx, func(_ string, now time.Time, c *pool.Core) error {
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
		if p := f.control.store.Snapshot().FleetPool(name); p == nil {
			return nil, drover.Errorf(drover.NotFound, "the fleet has no pool %q", name)
		}
		return nil, drover.Errorf(drover.Unavailable, "pool %q: %s", name, f.problem(f.control.store.Snapshot().FleetPool(name).Policy.Provider))
	}
	return plans, err
}

func planOf(now time.Time, c *pool.Core, in scaler.Input, out scaler.Output) drover.FleetPlan {
	p := drover.FleetPlan{Pool: in.Policy.Name, At: now.UTC(), Actions: []drover.FleetAction{}, Deferred: out.Deferred, Settled: in.Settled}
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

func actionOf(a *scaler.Action) drover.FleetAction {
	out := drover.FleetAction{Kind: string(a.Kind), Count: a.Count, Instance: a.Instance, Hedge: a.Hedge, Why: a.Why, Reason: a.Reason}
	if a.Offering != nil {
		out.Offering, out.PerHour = a.Offering.Key, a.Offering.Price*float64(a.Count)
	}
	return out
}

// waitingOf completes what the scaler says of waiting work, in the order in which it is served.
func waitingOf(now time.Time, c *pool.Core, name string, list []scaler.Waiting) []drover.FleetWaiting {
	demand := map[string]drover.DemandClass{}
	for _, d := range c.Demand(name) {
		demand[d.Name] = d
	}
	ready := c.FirstReady(now, name)
	out := []drover.FleetWaiting{}
	for _, w := range list {
		d, known := demand[w.Class]
		if !known {
			continue // standby, and work on machines that are taken back
		}
		x := drover.FleetWaiting{
			Pool: name, Class: w.Class, Each: d.Each, Count: w.Count, Placed: w.Placed, Bought: w.Bought, Priority: d.Priority,
			Since: d.Since.UTC(), Reason: w.Reason,
		}
		if w.Placed > 0 {
			x.ReadyAt = ready
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b drover.FleetWaiting) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), strings.Compare(a.Class, b.Class))
	})
	for n := range out {
		out[n].Position, out[n].Of = n+1, len(out)
	}
	return out
}

// Waiting implements fleet.Fleet of the face. Work in node pools without a pool of the fleet is not in it.
func (f fleetFace) Waiting(ctx context.Context, name string) ([]drover.FleetWaiting, error) {
	plans, err := f.Plan(ctx, name)
	out := []drover.FleetWaiting{}
	for _, p := range plans {
		out = append(out, p.Waiting...)
	}
	return out, err
}
