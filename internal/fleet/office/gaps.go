package office

import (
	"fmt"
	"time"

	"github.com/drover-project/drover/fleet"
)

// Each server notes what it did as it led. The notes of one that is gone for good are gone, too; what the state knows of its machines
// says when they were bought, came up and went, and why.

// missed are the lines of the audit log that nobody who was asked has, as the state tells them, and a line that says so.
func (o *Office) missed(q AuditQuery, told []fleet.Audit) (lines []fleet.Audit) {
	type line struct{ instance, what string }
	noted := map[line]bool{}
	for k := range told {
		e := &told[k]
		what := e.What
		if as := sameAs[what]; as != "" {
			what = as
		}
		noted[line{e.Instance, what}] = true
		for _, id := range e.Several {
			noted[line{id, what}] = true
		}
	}
	machines := map[string]bool{}
	var from, to time.Time
	for i := range o.deps.State().FleetInstances("") {
		for _, e := range lived(i) {
			if noted[line{e.Instance, e.What}] || !q.match(&e) {
				continue
			}
			lines = append(lines, e)
			machines[e.Instance] = true
			if from.IsZero() || e.At.Before(from) {
				from = e.At
			}
			if e.At.After(to) {
				to = e.At
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append(lines, o.gap("gone", fmt.Sprintf(
		"what was done about %d machines from %s to %s was noted by a server that is gone, or does not answer: of it only lines that end in "+
			"%q are here", len(machines), from.Format(time.RFC3339), to.Format(time.RFC3339), fromState)))
}

// sameAs are lines that stand for another one. A machine that was found in the cloud was bought under another state, one that
// was broken as it came up was drained instead of taken into use, and people kill.
var sameAs = map[string]string{"adopted": "create", "inherited": "create", "drain": "active", "kill": "destroy"}

// fromState ends the reason of a line that was made from the state.
const fromState = "(from the state)"

// lived are the lines that the state has of a machine.
func lived(i *fleet.InstanceRecord) (lines []fleet.Audit) {
	add := func(at time.Time, what, why, reason string) {
		if !at.IsZero() && i.Of == "" {
			lines = append(lines, fleet.Audit{
				At: at.UTC(), Pool: i.Pool, Instance: i.ID, What: what, Why: why, Reason: reason + " " + fromState, Offering: i.Offering, Count: 1,
			})
		}
	}
	add(i.PlannedAt, string(fleet.ActionCreate), "recorded", i.Bought)
	add(i.ReadyAt, "active", "ready", "its agent was ready")
	if i.State == fleet.InstanceDestroying {
		add(i.StateAt, string(fleet.ActionDestroy), i.Why, i.Reason)
	}
	add(i.GoneAt, "gone", i.Why, i.Reason)
	return lines
}

// gap is the entry that says that others are missing.
func (o *Office) gap(why, reason string) fleet.Audit {
	return fleet.Audit{At: o.deps.Clock.Now().UTC(), What: "incomplete", Why: why, Reason: reason}
}
