package office

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// The bounds of a timeline. Machines that are gone are kept for a while only.
const (
	mostTimeline = 30 * 24 * time.Hour
	mostMachines = 1_000
)

// Timeline says what the machines of a pool did, or of all with "", since a time ago; of more than a number the last ones. Errors: Invalid,
// NotLeader, Unavailable.
func (o *Office) Timeline(ctx context.Context, pool string, since time.Duration, most int) (fleet.Timeline, error) {
	if since < time.Minute || since > mostTimeline {
		return fleet.Timeline{}, drover.Errorf(drover.Invalid, "since: want from 1m to %v, got %v", mostTimeline, since)
	}
	if most < 1 || most > mostMachines {
		return fleet.Timeline{}, drover.Errorf(drover.Invalid, "limit: want 1 to %d, got %d", mostMachines, most)
	}
	there, err := o.Instances(ctx, pool)
	if err != nil {
		return fleet.Timeline{}, err
	}
	told, err := o.Audit(ctx, pool, "", 2*auditKept)
	if err != nil {
		return fleet.Timeline{}, err
	}
	lines := map[string][]fleet.Audit{}
	for _, e := range told {
		for _, id := range append([]string{e.Instance}, e.Several...) {
			lines[id] = append(lines[id], e)
		}
	}
	now := o.deps.Clock.Now().UTC()
	out := fleet.Timeline{From: now.Add(-since), To: now, Machines: []fleet.MachineTimeline{}}
	known := map[string]bool{}
	add := func(d *fleet.Durable, work int) {
		if known[d.ID] || pool != "" && d.Pool != pool || !d.GoneAt.IsZero() && d.GoneAt.Before(out.From) {
			return
		}
		known[d.ID] = true
		out.Machines = append(out.Machines, fleet.MachineTimeline{
			ID: d.ID, Pool: d.Pool, Offering: d.Offering, State: d.State, Work: work, Price: d.Price, Charged: d.Charged, Bought: d.Bought,
			Reason: cmp.Or(d.Reason, d.LastError), Phases: d.Phases(lines[d.ID]),
		})
	}
	for i := range there {
		add(&there[i].Durable, there[i].Work)
	}
	for r := range o.deps.State().FleetInstances("") {
		if r.State == fleet.InstanceGone {
			add(&r.Durable, 0)
		}
	}
	began := func(m *fleet.MachineTimeline) time.Time {
		if len(m.Phases) == 0 {
			return time.Time{}
		}
		return m.Phases[0].From
	}
	slices.SortFunc(out.Machines, func(a, b fleet.MachineTimeline) int {
		return cmp.Or(began(&b).Compare(began(&a)), cmp.Compare(a.ID, b.ID))
	})
	if n := len(out.Machines); n > most {
		out.Machines, out.More = out.Machines[:most:most], n-most
	}
	return out, nil
}
