package office

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// Pools returns all pools with how they stand, in the order of their names. Errors: NotLeader, Unavailable.
func (o *Office) Pools(ctx context.Context) ([]fleet.PoolStatus, error) {
	list := []fleet.PoolStatus{}
	at := map[string]int{}
	s := o.deps.State()
	now := o.deps.Clock.Now()
	spent := map[string]float64{}
	for c := range s.FleetCosts(now.UTC().Format(time.DateOnly)) {
		spent[c.Pool] += c.Cost
	}
	for p := range s.FleetPools() {
		st := fleet.PoolStatus{
			Pool: *p, Machines: map[string]int{}, Today: spent[p.Name], Least: p.Effective().MinAt(now),
			Waiting: []fleet.Waiting{},
		}
		at[p.Name] = len(list)
		list = append(list, st)
	}
	err := o.deps.Loops.Each(ctx, func(_ string, now time.Time, c *pool.Core) error {
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
			list[n].Lacks = c.Lacks(policy.Name)
			if len(list[n].Waiting) > 0 || list[n].Lacks != "" {
				list[n].Failed = c.Failed(now, policy.Name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for n := range list {
		list[n].Alert = overBudget(&list[n].Policy.Budget, list[n].PerHour, list[n].Today)
		list[n].Problem = cmp.Or(o.deps.Loops.Problem(list[n].Policy.Provider), list[n].Problem)
	}
	return list, nil
}

// overBudget says by how much a budget is passed: with BudgetAlert, by work of a critical priority, or as it was lowered.
func overBudget(b *fleet.Budget, perHour, today float64) string {
	switch {
	case b.PerHour > 0 && perHour > b.PerHour:
		return fmt.Sprintf("costs %s an hour, the budget is %s", fleet.Money(perHour), fleet.Money(b.PerHour))
	case b.PerDay > 0 && today > b.PerDay:
		return fmt.Sprintf("cost %s today, the budget is %s", fleet.Money(today), fleet.Money(b.PerDay))
	}
	return ""
}

// Pool returns one pool. Errors: as Pools; NotFound.
func (o *Office) Pool(ctx context.Context, name string) (fleet.PoolStatus, error) {
	list, err := o.Pools(ctx)
	if err != nil {
		return fleet.PoolStatus{}, err
	}
	for _, p := range list {
		if p.Name == name {
			return p, nil
		}
	}
	return fleet.PoolStatus{}, drover.Errorf(drover.NotFound, "the fleet has no pool %q", name)
}

// PutPool stores a pool, a new one or another version of one that was made over the API. Errors: as Pools; Invalid; Conflict
// for a pool of the configuration.
func (o *Office) PutPool(ctx context.Context, policy *fleet.Policy) error {
	return o.putPool(ctx, policy, nil)
}

// ReplacePool is PutPool for who saw the pool at an index; 0: there was none. Errors: Conflict, too, if it was changed since.
func (o *Office) ReplacePool(ctx context.Context, policy *fleet.Policy, was uint64) error {
	return o.putPool(ctx, policy, &was)
}

func (o *Office) putPool(ctx context.Context, policy *fleet.Policy, was *uint64) error {
	policy.Retiring = false // that is what DELETE is for
	policy.Canonicalize()
	if err := policy.Validate(); err != nil {
		return err
	}
	if err := o.deps.Loops.Each(ctx, func(string, time.Time, *pool.Core) error { return nil }); err != nil {
		return err
	}
	if problem := o.deps.Loops.Problem(policy.Provider); problem != "" {
		return drover.Errorf(drover.Invalid, "fleet[%s].Provider: %s", policy.Name, problem)
	}
	if region := o.deps.Regions[policy.Provider]; policy.Region != "" && policy.Region != region {
		return drover.Errorf(drover.Invalid, "fleet[%s].Region: is %q, but provider %q has %q: another region is another provider", policy.Name,
			policy.Region, policy.Provider, region)
	}
	again, err := o.store(ctx, policy, was)
	for tries := 0; again && tries < otherChanges; tries++ {
		again, err = o.store(ctx, policy, was)
	}
	if err != nil {
		return err
	}
	o.deps.Audit.Add(fleet.Audit{Pool: policy.Name, What: "put", Why: "operator", Reason: "the pool was set over the API"})
	return nil
}

// otherChanges is how many changes of other pools may come between, while a pool is replaced that is as it was.
const otherChanges = 20

// store stores a pool, if it is still as it was. If any pool changed meanwhile, again is set. Errors: those of ReplacePool.
func (o *Office) store(ctx context.Context, policy *fleet.Policy, was *uint64) (again bool, err error) {
	s := o.deps.State()
	next := &fleet.Pool{Name: policy.Name, Policy: policy, Source: fleet.SourceAPI}
	put, now := o.deps.Log.PutPools, uint64(0)
	if old := s.FleetPool(policy.Name); old != nil {
		now = old.ModifyIndex
		if old.Source == fleet.SourceConfig && !old.Retiring {
			return false, drover.Errorf(drover.Conflict, "pool %q is in the agent's configuration: change it there", policy.Name)
		}
		next.PauseCreates, next.PauseDestroys, next.PauseReason = old.PauseCreates, old.PauseDestroys, old.PauseReason
	}
	if was != nil {
		if now != *was {
			return false, drover.Errorf(
				drover.Conflict, "pool %q was changed since index %d: it is at %d by now, read it again", policy.Name, *was, now,
			)
		}
		put = func(ctx context.Context, pools []*fleet.Pool) error { // so that nothing comes between
			return o.deps.Log.ApplyPools(ctx, pools, fleet.PoolsVersion(s.FleetPools()))
		}
	}
	err = put(ctx, []*fleet.Pool{next})
	return was != nil && drover.CodeOf(err) == drover.Conflict, err
}

// change stores a changed copy of a pool. Errors: NotFound.
func (o *Office) change(ctx context.Context, name string, do func(*fleet.Pool) error) error {
	old := o.deps.State().FleetPool(name)
	if old == nil {
		return drover.Errorf(drover.NotFound, "the fleet has no pool %q", name)
	}
	next := *old
	if err := do(&next); err != nil {
		return err
	}
	return o.deps.Log.PutPools(ctx, []*fleet.Pool{&next})
}

// DeletePool retires a pool: it is gone once its last machine is. Errors: NotFound; Conflict for a pool of the configuration.
func (o *Office) DeletePool(ctx context.Context, name string) error {
	err := o.change(ctx, name, func(p *fleet.Pool) error {
		if p.Source == fleet.SourceConfig && !p.Retiring && o.configured(name) {
			return drover.Errorf(drover.Conflict, "pool %q is in the configuration of server %s: remove it there", name, o.deps.Server)
		}
		p.Retiring = true
		return nil
	})
	if err == nil {
		o.deps.Audit.Add(fleet.Audit{Pool: name, What: "delete", Why: "operator", Reason: "machines go as they become idle"})
	}
	return err
}

// configured reports whether a pool is in this server's file. One that cannot be read may have it.
func (o *Office) configured(name string) bool {
	list, err := o.deps.Configured()
	return err != nil || slices.ContainsFunc(list, func(p *fleet.Policy) bool { return p.Name == name })
}

// Pause switches decisions of a pool off, or on again. Errors: NotFound.
func (o *Office) Pause(ctx context.Context, name string, pause fleet.Pause) error {
	err := o.change(ctx, name, func(p *fleet.Pool) error {
		p.PauseCreates, p.PauseDestroys, p.PauseReason = pause.Creates, pause.Destroys, pause.Reason
		return nil
	})
	if err == nil {
		what := "resume"
		if pause.Creates || pause.Destroys {
			what = fmt.Sprintf("pause creates=%t destroys=%t", pause.Creates, pause.Destroys)
		}
		o.deps.Audit.Add(fleet.Audit{Pool: name, What: what, Why: "operator", Reason: pause.Reason})
	}
	return err
}
