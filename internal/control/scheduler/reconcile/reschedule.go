package reconcile

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
)

const (
	rescheduleNowWindow = time.Second // due within this is due
	keptReschedules     = 5           // events kept when attempts are unlimited
)

// rescheduling says what becomes of a failed allocation.
type rescheduling struct {
	ever  bool
	at    time.Time
	delay time.Duration
}

// reschedulingOf applies a group's policy to a failed allocation. To force it spares the attempts and the delay of a
// policy, not one that says never.
func reschedulingOf(a *drover.Allocation, p *drover.ReschedulePolicy, now time.Time) rescheduling {
	if p != nil && !optional.Value(p.Unlimited) && optional.Value(p.Attempts) == 0 {
		return rescheduling{}
	}
	if optional.Value(a.DesiredTransition.ForceReschedule) {
		return rescheduling{ever: true, at: now}
	}
	if p == nil {
		return rescheduling{}
	}
	failed := failedAt(a)
	unlimited := optional.Value(p.Unlimited)
	if !unlimited {
		attempts, interval := optional.Value(p.Attempts), optional.Value(p.Interval)
		if recentReschedules(a, failed, interval) >= attempts {
			return rescheduling{}
		}
	}
	delay := nextDelay(a, p, failed)
	return rescheduling{ever: true, at: failed.Add(delay), delay: delay}
}

// Reschedulable reports whether the policy of a's own version leaves another attempt to replace it. It is asked of
// allocations that failed or are unhealthy.
func Reschedulable(a *drover.Allocation, now time.Time) bool {
	if a.Job == nil || a.Job.Group(a.TaskGroup) == nil {
		return false
	}
	return reschedulingOf(a, a.Job.Group(a.TaskGroup).ReschedulePolicy, now).ever
}

// failedAt is when the last task ended.
func failedAt(a *drover.Allocation) time.Time {
	var last time.Time
	for _, t := range a.TaskStates {
		if t.FinishedAt.After(last) {
			last = t.FinishedAt
		}
	}
	if last.IsZero() {
		last = time.Unix(0, a.ModifyTime)
	}
	return last
}

// recentReschedules counts the replacements that led to this allocation within the interval before it failed; all if it
// is 0.
func recentReschedules(a *drover.Allocation, failed time.Time, interval time.Duration) int {
	n := 0
	for _, e := range events(a) {
		if interval == 0 || e.RescheduleTime > failed.Add(-interval).UnixNano() {
			n++
		}
	}
	return n
}

// events returns the earlier replacements of the allocation's chain; nil if it replaces none.
func events(a *drover.Allocation) []*drover.RescheduleEvent {
	if a.RescheduleTracker == nil {
		return nil
	}
	return a.RescheduleTracker.Events
}

// nextDelay grows with the chain of replacements, up to MaxDelay; a run that outlived MaxDelay starts over.
func nextDelay(a *drover.Allocation, p *drover.ReschedulePolicy, failed time.Time) time.Duration {
	base, most := optional.Value(p.Delay), optional.Value(p.MaxDelay)
	past := events(a)
	if len(past) == 0 || p.DelayFunction == "constant" || p.DelayFunction == "" {
		return base
	}
	last := past[len(past)-1]
	delay := max(2*last.Delay, base)
	if p.DelayFunction == "fibonacci" {
		delay = base
		if len(past) > 1 {
			delay = max(last.Delay+past[len(past)-2].Delay, base)
		}
	}
	if most > 0 && delay > most {
		delay = most
		if failed.Sub(time.Unix(0, last.RescheduleTime)) > most {
			delay = base
		}
	}
	return delay
}

// trackerOf returns the chain for the replacement of a.
func trackerOf(a *drover.Allocation, p *drover.ReschedulePolicy, rescheduled bool, now time.Time) *drover.RescheduleTracker {
	past := events(a)
	if !rescheduled {
		return a.RescheduleTracker
	}
	keep := []*drover.RescheduleEvent{}
	if p == nil || optional.Value(p.Unlimited) {
		keep = append(keep, past[max(0, len(past)-keptReschedules+1):]...)
	} else {
		for _, e := range past {
			if e.RescheduleTime > now.Add(-optional.Value(p.Interval)).UnixNano() {
				keep = append(keep, e)
			}
		}
	}
	delay := reschedulingOf(a, p, now).delay
	return &drover.RescheduleTracker{LastReschedule: "ok", Events: append(keep, &drover.RescheduleEvent{
		RescheduleTime: now.UnixNano(), PrevAllocID: a.ID, PrevNodeID: a.NodeID, Delay: delay,
	})}
}

// FailedOn lists the nodes where the chain of a rescheduled placement failed before.
func (p Placement) FailedOn() []string {
	out := []string{p.Previous.NodeID}
	for _, e := range events(p.Previous) {
		out = append(out, e.PrevNodeID)
	}
	return out
}
