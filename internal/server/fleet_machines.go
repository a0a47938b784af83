package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/ledger"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// Instances implements fleet.Fleet of the face: orphans last.
func (f fleetFace) Instances(ctx context.Context, name string) ([]drover.Instance, error) {
	list := []drover.Instance{}
	err := f.each(ctx, func(_ string, now time.Time, c *pool.Core) error {
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

func policyNames(c *pool.Core) (names []string) {
	for _, p := range c.Policies() {
		names = append(names, p.Name)
	}
	return names
}

// find calls do with the machine of the id, a prefix of it, or the cloud's id. Errors: NotFound, Invalid if several are
// meant.
func (f *fleet) find(ctx context.Context, id string, do func(now time.Time, c *pool.Core, i drover.Instance) error) error {
	if id == "" {
		return drover.Errorf(drover.Invalid, "instance: must be set")
	}
	var owner string
	var found []drover.Instance
	err := f.each(ctx, func(name string, _ time.Time, c *pool.Core) error {
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
	return f.each(ctx, func(name string, now time.Time, c *pool.Core) error {
		if name != owner {
			return nil
		}
		return do(now, c, found[0])
	})
}

// Behave implements fleet.Fleet of the face.
func (f fleetFace) Behave(ctx context.Context, id string, b drover.IdleBehavior, reason string) error {
	return f.bid(ctx, id, func(now time.Time, c *pool.Core, instance string) error {
		return c.Behave(now, instance, b, cmp.Or(reason, "an operator wants it"))
	})
}

// Kill implements fleet.Fleet of the face.
func (f fleetFace) Kill(ctx context.Context, id, reason string) error {
	return f.bid(ctx, id, func(now time.Time, c *pool.Core, instance string) error {
		return c.Kill(now, instance, cmp.Or(reason, "an operator wants it"))
	})
}

// Interrupt implements fleet.Fleet of the face. Without a time it is in two minutes, as clouds mostly give.
func (f fleetFace) Interrupt(ctx context.Context, id string, at time.Time) error {
	return f.bid(ctx, id, func(now time.Time, c *pool.Core, instance string) error {
		if at.IsZero() {
			at = now.Add(2 * time.Minute)
		}
		c.Interrupted(now, instance, at)
		return nil
	})
}

// bid does an operator's bidding; when it returns, a restarted server knows of it too.
func (f *fleet) bid(ctx context.Context, id string, do func(now time.Time, c *pool.Core, instance string) error) error {
	var after drover.Instance
	err := f.find(ctx, id, func(now time.Time, c *pool.Core, i drover.Instance) error {
		if err := do(now, c, i.ID); err != nil {
			return err
		}
		after, _ = c.Instance(i.ID)
		return nil
	})
	if err != nil || after.ID == "" {
		return err
	}
	_, _, err = f.control.log.Propose(ctx, &command.UpdateFleet{Put: []*drover.FleetInstance{rowOf(&after, after.Provider)}})
	return err
}

// Explain implements fleet.Fleet of the face.
func (f fleetFace) Explain(ctx context.Context, id string) (drover.FleetExplanation, error) {
	x := drover.FleetExplanation{Next: []drover.FleetAction{}, Jobs: []drover.NamespacedID{}}
	err := f.find(ctx, id, func(now time.Time, c *pool.Core, i drover.Instance) error {
		i.Charged = max(i.Charged, ledger.Of(&i, now))
		x.Instance = i
		if in, err := c.Input(now, i.Pool); err == nil {
			out := scaler.Decide(in)
			for k := range out.Actions {
				if out.Actions[k].Instance == i.ID {
					x.Next = append(x.Next, actionOf(&out.Actions[k]))
				}
			}
		}
		x.Text = append(x.Text, sentences(now, c, &i)...)
		return nil
	})
	if drover.CodeOf(err) == drover.NotFound {
		return f.explainGone(ctx, id, err)
	}
	if err != nil {
		return x, err
	}
	seen := map[drover.NamespacedID]bool{}
	for a := range f.control.store.Snapshot().UnfinishedByNode(x.Instance.NodeID) {
		if key := (drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}); x.Instance.NodeID != "" && !seen[key] {
			seen[key] = true
			x.Jobs = append(x.Jobs, key)
		}
	}
	for _, a := range x.Next {
		x.Text = append(x.Text, fmt.Sprintf("Next: %s, as %s.", a.Kind, a.Reason))
	}
	x.History, err = f.Audit(ctx, "", x.Instance.ID, 50)
	return x, err
}

// explainGone tells of a machine that is not there any more, as long as it is remembered.
func (f fleetFace) explainGone(ctx context.Context, id string, notFound error) (x drover.FleetExplanation, err error) {
	for r := range f.control.store.Snapshot().FleetInstances("") {
		meant := r.ID == id || r.ProviderID == id || len(id) >= 4 && strings.HasPrefix(r.ID, id)
		if !meant {
			continue
		}
		if r.State != drover.InstanceGone { // just now: the log is about to be told
			gone := *r
			gone.State, gone.GoneAt, gone.Reason = drover.InstanceGone, f.deps.Clock.Now(), "it went just now"
			r = &gone
		}
		x.Instance = drover.Instance{
			ID: r.ID, ProviderID: r.ProviderID, Pool: r.Pool, Provider: r.Provider, Offering: r.Offering, Template: r.Template, NodeID: r.NodeID,
			Address: r.Address, State: r.State, Behavior: r.Behavior, Why: r.Why, Reason: r.Reason, Price: r.Price, Charged: r.Charged,
			Bought: r.Bought, LastError: r.LastError, PlannedAt: r.PlannedAt, CreatedAt: r.CreatedAt, ReadyAt: r.ReadyAt, GoneAt: r.GoneAt,
		}
		x.Text = []string{fmt.Sprintf("It is gone since %s: %s. It cost %s.", r.GoneAt.UTC().Format(time.RFC3339), r.Reason, drover.Money(r.Charged))}
		if r.Bought != "" {
			x.Text = append(x.Text, fmt.Sprintf("It was bought at %s: %s.", r.PlannedAt.UTC().Format(time.RFC3339), r.Bought))
		}
		if r.LastError != "" {
			x.Text = append(x.Text, "What went wrong last: "+r.LastError)
		}
		x.History, err = f.Audit(ctx, "", r.ID, 50)
		return x, err
	}
	return x, notFound
}

func sentences(now time.Time, c *pool.Core, i *drover.Instance) []string {
	out := []string{fmt.Sprintf("It is %s for %s: %s.", i.State, now.Sub(i.StateAt).Round(time.Second), i.Reason)}
	if i.Bought != "" {
		out = append(out, fmt.Sprintf("It was bought at %s: %s.", i.PlannedAt.UTC().Format(time.RFC3339), i.Bought))
	}
	if i.LastError != "" {
		out = append(out, "What went wrong last: "+i.LastError)
	}
	switch {
	case i.State.Starting():
		out = append(out, fmt.Sprintf("Machines of %s take %s to start; it is given up after %s.", i.Type,
			c.Beliefs().BootQuantile(i.Offering, i.Type, 0.5).Round(time.Second), c.BootDeadline(i).Round(time.Second)))
	case i.Busy():
		out = append(out, fmt.Sprintf("%d pieces of work run on it: it is not destroyed while they do, but by a person or the cloud.", i.Work))
	case !i.IdleAt.IsZero():
		out = append(out, fmt.Sprintf("It has no work since %s.", i.IdleAt.UTC().Format(time.TimeOnly)))
		if held, ok := c.Held(i.Pool, i.ID); ok {
			out = append(out, "It is "+held.String()+".")
		}
	}
	switch i.Behavior {
	case drover.BehaviorHold:
		out = append(out, "An operator holds it: it takes no new work and is never destroyed by the fleet.")
	case drover.BehaviorDrain:
		out = append(out, "It takes no new work and goes as soon as it is idle.")
	case drover.BehaviorRun:
	}
	if !i.LostAt.IsZero() {
		out = append(out, "Its agent is silent since "+i.LostAt.UTC().Format(time.RFC3339)+".")
	}
	if !i.InterruptAt.IsZero() {
		out = append(out, "The cloud takes it back at "+i.InterruptAt.UTC().Format(time.RFC3339)+".")
	}
	if !i.ExpiresAt.IsZero() {
		out = append(out, "It is replaced when it expires, at "+i.ExpiresAt.UTC().Format(time.RFC3339)+".")
	}
	return append(out, fmt.Sprintf("It costs %s an hour, %s so far.", drover.Money(i.Price), drover.Money(i.Charged)))
}

// Audit implements fleet.Fleet of the face.
func (f fleetFace) Audit(_ context.Context, poolName, instance string, most int) ([]drover.FleetAudit, error) {
	list := f.audit.list(func(e *pool.Entry) bool {
		return (poolName == "" || e.Pool == poolName) && (instance == "" || e.Instance != "" && strings.HasPrefix(e.Instance, instance) ||
			slices.ContainsFunc(e.Several, func(i string) bool { return strings.HasPrefix(i, instance) }))
	}, most)
	out := make([]drover.FleetAudit, len(list))
	for n, e := range list {
		out[n] = drover.FleetAudit(e)
	}
	return out, nil
}

// Costs implements fleet.Fleet of the face: as far as charged, which is every ten seconds (rarer in big fleets) and when a machine goes. What used
// a machine between the last time and a crash of the server is counted as what used it afterwards.
func (f fleetFace) Costs(_ context.Context, from, by string) (drover.FleetCostReport, error) {
	by = cmp.Or(by, "pool")
	report := drover.FleetCostReport{From: from, By: by, Lines: []drover.FleetCostLine{}}
	if _, err := time.Parse(time.DateOnly, from); err != nil && from != "" {
		return report, drover.Errorf(drover.Invalid, "from: must be a day such as 2026-01-31, got %q", from)
	}
	lines := map[string]*drover.FleetCostLine{}
	add := func(key, poolName string, cost, hours float64) *drover.FleetCostLine {
		l := lines[key+"\x00"+poolName]
		if l == nil {
			l = &drover.FleetCostLine{Key: key, Pool: poolName}
			lines[key+"\x00"+poolName] = l
		}
		l.Cost += cost
		l.Hours += hours
		report.Total += cost
		return l
	}
	s := f.control.store.Snapshot()
	switch by {
	case "day", "pool", "job":
		for c := range s.FleetCosts(from) {
			key := map[string]string{"day": c.Day, "pool": c.Pool, "job": jobKey(c)}[by]
			add(key, c.Pool, c.Cost, c.Hours)
		}
	case "machine":
		for i := range s.FleetInstances("") {
			if i.CreatedAt.IsZero() || i.CreatedAt.UTC().Format(time.DateOnly) < from {
				continue
			}
			end := i.GoneAt
			if end.IsZero() {
				end = f.deps.Clock.Now()
			}
			add(i.ID, i.Pool, i.Charged, end.Sub(i.CreatedAt).Hours()).Gone = i.State == drover.InstanceGone
		}
	default:
		return report, drover.Errorf(drover.Invalid, "by: must be day, pool, job or machine, got %q", by)
	}
	for _, l := range lines {
		report.Lines = append(report.Lines, *l)
	}
	slices.SortFunc(report.Lines, func(a, b drover.FleetCostLine) int {
		if by == "day" {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Pool, b.Pool))
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Pool, b.Pool))
	})
	return report, nil
}

func jobKey(c *drover.FleetCost) string {
	if c.Job == drover.FleetIdle {
		return "idle"
	}
	return c.Namespace + "/" + c.Job
}

// fleetWork is what runs on the fleet's machines, for Arvados' paths.
type fleetWork struct{ *fleet }

// Running implements fleet.Work of the face.
func (f fleetWork) Running(context.Context) ([]*drover.Allocation, error) {
	s := f.control.store.Snapshot()
	var list []*drover.Allocation
	nodes, _ := f.view.Nodes()
	for _, n := range nodes {
		for a := range s.UnfinishedByNode(n.ID) {
			list = append(list, a)
		}
	}
	return list, nil
}

// StopAllocation implements fleet.Work of the face: as in Arvados, what is killed is not started again.
func (f fleetWork) StopAllocation(ctx context.Context, id, reason string) error {
	a := f.control.store.Snapshot().Allocation(id)
	if a == nil {
		return drover.Errorf(drover.NotFound, "container not found: %q", id)
	}
	c := &command.StopAllocs{IDs: []string{id}, Description: cmp.Or(reason, "killed by an operator"), Time: f.deps.Clock.Now().UnixNano()}
	_, _, err := f.control.log.Propose(ctx, c)
	return err
}
