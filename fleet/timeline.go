package fleet

import (
	"cmp"
	"slices"
	"time"
)

// Timeline is what machines did in a span of time.
type Timeline struct {
	From, To time.Time
	Machines []MachineTimeline // those that were asked for last first
	More     int               `json:",omitempty"` // how many were there beside these
}

// MachineTimeline is a machine's.
type MachineTimeline struct {
	ID       string
	Pool     string
	Offering string
	State    InstanceState
	Work     int     `json:",omitempty"` // pieces of work on it now
	Price    float64 // per hour
	Charged  float64 // so far
	Bought   string  // why it was bought, for people
	Reason   string  // why it is kept, or was returned: why it is in this state
	Phases   []Phase // one after the other
}

// PhaseName says what a machine did for a while.
type PhaseName string

// The phases of a machine.
const (
	PhaseAsked     PhaseName = "asked"     // the cloud is asked for it
	PhaseBooting   PhaseName = "booting"   // the cloud has it, and it takes no work yet
	PhaseActive    PhaseName = "active"    // it takes work; when in that time it had none is not kept
	PhaseIdle      PhaseName = "idle"      // it takes work and has none: the last time before it went, or now
	PhaseDraining  PhaseName = "draining"  // it takes no new work
	PhaseReturning PhaseName = "returning" // the cloud is asked to destroy it
)

// Phase is what a machine did from a time to another.
type Phase struct {
	Name   PhaseName
	From   time.Time
	To     time.Time `json:",omitzero"` // zero: it still does
	Reason string    `json:",omitempty"`
}

// Phases are a machine's, as the log and the audit log have it: the lines about this machine, in order.
func (d *Durable) Phases(told []Audit) []Phase {
	var list []Phase
	add := func(name PhaseName, at time.Time, reason string) {
		if !at.IsZero() && !slices.ContainsFunc(list, func(p Phase) bool { return p.Name == name && p.From.Equal(at) }) {
			list = append(list, Phase{Name: name, From: at, Reason: reason})
		}
	}
	add(PhaseAsked, d.PlannedAt, d.Bought)
	add(PhaseBooting, d.CreatedAt, "")
	add(PhaseActive, d.ReadyAt, "")
	for i := range told {
		switch e := &told[i]; e.What {
		case InstanceDraining.String(), string(ActionDrain):
			add(PhaseDraining, e.At, e.Reason)
		case InstanceDestroying.String(), string(ActionDestroy), "kill":
			add(PhaseReturning, e.At, e.Reason)
		}
	}
	switch {
	case d.State == InstanceDraining:
		add(PhaseDraining, d.StateAt, d.Reason)
	case d.State == InstanceDestroying:
		add(PhaseReturning, d.StateAt, d.Reason)
	case d.State == InstanceActive && d.StateAt.After(d.ReadyAt): // a drain was called off
		add(PhaseActive, d.StateAt, d.Reason)
	}
	returned := slices.IndexFunc(list, func(p Phase) bool { return p.Name == PhaseDraining || p.Name == PhaseReturning })
	if !d.IdleAt.IsZero() && d.IdleAt.After(d.ReadyAt) && (returned < 0 || d.IdleAt.Before(list[returned].From)) {
		add(PhaseIdle, d.IdleAt, "")
	}
	slices.SortStableFunc(list, func(a, b Phase) int { return cmp.Compare(a.From.UnixNano(), b.From.UnixNano()) })
	list = slices.CompactFunc(list, func(a, b Phase) bool { return a.Name == b.Name })
	for i := range list {
		if i+1 < len(list) {
			list[i].To = list[i+1].From
		} else {
			list[i].To = d.GoneAt
		}
	}
	return list
}
