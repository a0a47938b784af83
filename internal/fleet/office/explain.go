package office

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/ledger"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// Explain says why a machine is there, and what becomes of it. Errors: NotFound, Invalid, NotLeader, Unavailable.
func (o *Office) Explain(ctx context.Context, id string) (fleet.Explanation, error) {
	x := fleet.Explanation{Next: []fleet.Action{}, Jobs: []drover.NamespacedID{}}
	err := o.find(ctx, id, func(now time.Time, c *pool.Core, i fleet.Instance) error {
		i.Charged = max(i.Charged, ledger.Of(&i, now))
		x.Instance = i
		if in, err := c.Input(now, i.Pool); err == nil {
			out := scaler.Decide(in)
			for k := range out.Actions {
				if out.Actions[k].Instance == i.ID {
					x.Next = append(x.Next, out.Actions[k].Action)
				}
			}
		}
		x.Text = append(x.Text, describe(now, c, &i)...)
		return nil
	})
	if drover.CodeOf(err) == drover.NotFound {
		return o.explainGone(ctx, id, err)
	}
	if err != nil {
		return x, err
	}
	seen := map[drover.NamespacedID]bool{}
	for a := range o.deps.State().UnfinishedByNode(x.Instance.NodeID) {
		if key := (drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}); x.Instance.NodeID != "" && !seen[key] {
			seen[key] = true
			x.Jobs = append(x.Jobs, key)
		}
	}
	for _, a := range x.Next {
		x.Text = append(x.Text, fmt.Sprintf("Next: %s, as %s.", a.Kind, a.Reason))
	}
	x.History, err = o.Audit(ctx, "", x.Instance.ID, 50)
	return x, err
}

// explainGone explains a machine that is not there any more, as long as the log remembers it.
func (o *Office) explainGone(ctx context.Context, id string, notFound error) (x fleet.Explanation, err error) {
	for r := range o.deps.State().FleetInstances("") {
		meant := r.ID == id || r.ProviderID == id || len(id) >= 4 && strings.HasPrefix(r.ID, id)
		if !meant {
			continue
		}
		if r.State != fleet.InstanceGone { // just now: the log is about to be told
			gone := *r
			gone.State, gone.GoneAt, gone.Reason = fleet.InstanceGone, o.deps.Clock.Now(), "it went just now"
			r = &gone
		}
		x.Instance = fleet.Instance{Durable: r.Durable}
		x.Text = []string{fmt.Sprintf("It is gone since %s: %s. It cost %s.", r.GoneAt.UTC().Format(time.RFC3339), r.Reason,
			fleet.Money(r.Charged))}
		if r.Bought != "" {
			x.Text = append(x.Text, fmt.Sprintf("It was bought at %s: %s.", r.PlannedAt.UTC().Format(time.RFC3339), r.Bought))
		}
		if r.LastError != "" {
			x.Text = append(x.Text, "What went wrong last: "+r.LastError)
		}
		x.History, err = o.Audit(ctx, "", r.ID, 50)
		return x, err
	}
	return x, notFound
}

// describe tells in sentences what a machine is for, what it waits for, and why it stays or goes. The most important
// one comes first.
func describe(now time.Time, c *pool.Core, i *fleet.Instance) []string {
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
	case fleet.BehaviorHold:
		out = append(out, "An operator holds it: it takes no new work and is never destroyed by the fleet.")
	case fleet.BehaviorDrain:
		out = append(out, "It takes no new work and goes as soon as it is idle.")
	case fleet.BehaviorRun:
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
	return append(out, fmt.Sprintf("It costs %s an hour, %s so far.", fleet.Money(i.Price), fleet.Money(i.Charged)))
}
