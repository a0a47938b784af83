package office

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/ledger"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// Instances returns the machines of a pool, or all of them with those of no pool last. Errors: NotLeader, Unavailable.
func (o *Office) Instances(ctx context.Context, name string) ([]fleet.Instance, error) {
	list := []fleet.Instance{}
	err := o.deps.Loops.Each(ctx, func(_ string, now time.Time, c *pool.Core) error {
		for _, p := range append(policyNames(c), "") {
			if name != "" && p != name {
				continue
			}
			for _, i := range c.Instances(p) {
				i.Charged = max(i.Charged, ledger.Of(&i, now))
				list = append(list, i)
			}
		}
		return nil
	})
	return list, err
}

// policyNames are the names of the pools of one cloud.
func policyNames(c *pool.Core) (names []string) {
	for _, p := range c.Policies() {
		names = append(names, p.Name)
	}
	return names
}

// find calls do with the machine of the id, a prefix of it, or the cloud's id. Errors: NotFound, Invalid if several are
// meant.
func (o *Office) find(ctx context.Context, id string, do func(now time.Time, c *pool.Core, i fleet.Instance) error) error {
	if id == "" {
		return drover.Errorf(drover.Invalid, "instance: must be set")
	}
	var owner string
	var found []fleet.Instance
	err := o.deps.Loops.Each(ctx, func(name string, _ time.Time, c *pool.Core) error {
		for _, p := range append(policyNames(c), "") {
			for _, i := range c.Instances(p) {
				if i.ID == id || i.ProviderID == id || len(id) >= 4 && strings.HasPrefix(i.ID, id) {
					owner, found = name, append(found, i)
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return drover.Errorf(drover.NotFound, "the fleet has no instance %q", id)
	case len(found) > 1:
		return drover.Errorf(drover.Invalid, "%q may be any of %d instances: give more of its id", id, len(found))
	}
	return o.deps.Loops.Each(ctx, func(name string, now time.Time, c *pool.Core) error {
		if name != owner {
			return nil
		}
		return do(now, c, found[0])
	})
}

// Behave says whether a machine takes work and may be destroyed. Errors: NotFound, Invalid, NotLeader, Unavailable.
func (o *Office) Behave(ctx context.Context, id string, b fleet.IdleBehavior, reason string) error {
	return o.runOperatorAction(ctx, id, func(now time.Time, c *pool.Core, instance string) error {
		return c.Behave(now, instance, b, cmp.Or(reason, "an operator wants it"))
	})
}

// Kill has a machine destroyed with what runs on it. Errors: as Behave.
func (o *Office) Kill(ctx context.Context, id, reason string) error {
	return o.runOperatorAction(ctx, id, func(now time.Time, c *pool.Core, instance string) error {
		return c.Kill(now, instance, cmp.Or(reason, "an operator wants it"))
	})
}

// Interrupt tells the fleet that the cloud takes the machine back then. Without a time that is in two minutes, which is the
// notice that most clouds give. Errors: as Behave.
func (o *Office) Interrupt(ctx context.Context, id string, at time.Time) error {
	return o.runOperatorAction(ctx, id, func(now time.Time, c *pool.Core, instance string) error {
		if at.IsZero() {
			at = now.Add(2 * time.Minute)
		}
		c.Interrupted(now, instance, at)
		return nil
	})
}

// runOperatorAction does what an operator wants of a machine, and waits until it is recorded: when it returns, a restarted
// server knows of it too.
func (o *Office) runOperatorAction(ctx context.Context, id string, do func(now time.Time, c *pool.Core, instance string) error) error {
	var owner string
	err := o.find(ctx, id, func(now time.Time, c *pool.Core, i fleet.Instance) error {
		owner = i.Provider
		return do(now, c, i.ID)
	})
	if err != nil {
		return err
	}
	return o.deps.Loops.Recorded(ctx, owner)
}
