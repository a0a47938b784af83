package rollouts

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/optional"
)

// slack is how much earlier than its policy says a failed allocation is replaced: what is due within a second is due.
const slack = time.Second

// budgets is how many allocations jobs may still have made that replace none, by job.
type budgets map[string]*budget

// budget is what a job may have.
type budget struct {
	incarnation, version uint64 // the newest that was counted
	left                 int
}

// checkPlacements: what is made replaces something, each once and not before its policy says so, or a version wants it. A version wants its
// count and its canaries; what was stopped or lost may leave another one's place.
func (h *history) checkPlacements(before, after *store.Snapshot, j *drover.Job, now time.Time) (broken string) {
	b := h.budgets[j.ID]
	if b == nil || b.incarnation != j.CreateIndex || b.version != j.Version {
		if b == nil || b.incarnation != j.CreateIndex {
			b = &budget{incarnation: j.CreateIndex}
			h.budgets[j.ID] = b
		}
		b.version = j.Version
		for _, g := range j.TaskGroups {
			b.left += *g.Count
			if g.Update != nil {
				b.left += g.Update.Canary
			}
		}
	}
	for a := range after.AllocationsByJob(j.Namespace, j.ID) {
		old := before.Allocation(a.ID)
		switch {
		case old == nil && a.PreviousAllocation == "":
			if b.left--; b.left < 0 {
				return fmt.Sprintf("job %s: %s is placed, and nobody wants it", j.ID, a.Name)
			}
		case old == nil:
			if why := replaces(before.Allocation(a.PreviousAllocation), a, now); why != "" {
				return fmt.Sprintf("job %s: %s", j.ID, why)
			}
		case gone(a) && !gone(old):
			b.left++
		}
	}
	return ""
}

// gone reports whether an allocation's place is free: a failed one keeps its place.
func gone(a *drover.Allocation) bool {
	return a.ServerTerminal() || a.ClientStatus == drover.AllocClientLost || a.ClientStatus == drover.AllocClientComplete
}

// replaces says what is wrong with a replacing p.
func replaces(p, a *drover.Allocation, now time.Time) string {
	switch {
	case p == nil:
		return "" // it was collected
	case p.NextAllocation != "":
		return fmt.Sprintf("%s replaces an allocation that was replaced before", a.Name)
	case p.ClientStatus != drover.AllocClientFailed || p.ServerTerminal() || work(p) != work(a):
		return ""
	case optional.Value(p.DesiredTransition.ForceReschedule) || optional.Value(p.DesiredTransition.Migrate):
		return ""
	}
	policy := p.Job.Group(p.TaskGroup).ReschedulePolicy
	if policy == nil || !optional.Value(policy.Unlimited) && optional.Value(policy.Attempts) == 0 {
		return fmt.Sprintf("%s replaces a failed allocation, and its policy says never", a.Name)
	}
	if due := failedAt(p).Add(optional.Value(policy.Delay) - slack); now.Before(due) {
		return fmt.Sprintf("%s replaces what failed %s before its time", a.Name, due.Sub(now))
	}
	return ""
}

// work is what the allocation runs, as far as jobOf makes differences: what differs is no rescheduling.
func work(a *drover.Allocation) string { return workOf(a.Job, a.TaskGroup) }

// workOf is what a version's group runs.
func workOf(j *drover.Job, group string) string {
	g := j.Group(group)
	if g == nil {
		return ""
	}
	return fmt.Sprint(len(g.Tasks), g.Tasks[0].Config, g.Tasks[0].Resources.CPU, len(g.Networks))
}

// failedAt is when the allocation's last task ended.
func failedAt(a *drover.Allocation) (last time.Time) {
	for _, t := range a.TaskStates {
		if t.FinishedAt.After(last) {
			last = t.FinishedAt
		}
	}
	return last
}
