package herd

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// health is what an allocation is known to be in a deployment: allocrunner's watch, without checks of services.
type health struct {
	deployment string                        // that found belongs to
	found      *drover.AllocDeploymentStatus // nil: nothing was said yet
	watch      uint64                        // under way, with a deadline; 0 = none
	well       uint64                        // the time under way in which all tasks run; 0 = none does
}

// rest ends the watch.
func (h *health) rest() { h.watch, h.well = 0, 0 }

// watchHealth judges allocations of a deployment, and those of services without one by their migration, which a drain
// waits for: well for min_healthy_time, or failed, or not well by healthy_deadline. What joins another deployment is judged
// anew.
func (l *Allocation) watchHealth() {
	h := &l.health
	if l.Alloc.DeploymentID != h.deployment {
		*h = health{deployment: l.Alloc.DeploymentID}
	}
	shortest, deadline, ok := l.healthRule()
	if h.found != nil || l.group.Pool != nil || l.Alloc.ServerTerminal() || l.Alloc.DeploymentStatus.Judged() || !ok {
		h.rest()
		return
	}
	if l.Ended {
		l.judge(false)
		return
	}
	if h.watch == 0 && deadline > 0 {
		l.judgeAfter(deadline, false, &h.watch)
	}
	running := !l.killing && !slices.ContainsFunc(l.Tasks, func(t *Task) bool { return t.Status.Phase != taskmachine.Running })
	switch {
	case !running:
		h.well = 0
	case h.well == 0:
		l.judgeAfter(shortest, true, &h.well)
	}
}

// judgeAfter says what was found after d, unless the watch that number tells of is another one by then.
func (l *Allocation) judgeAfter(d time.Duration, healthy bool, number *uint64) {
	l.n.w.Seq++
	mine := l.n.w.Seq
	*number = mine
	l.n.Agent.After(d, "healthy", func() {
		if *number == mine {
			l.judge(healthy)
			l.Settle()
		}
	})
}

// healthRule says how long the allocation has to be well, and until when; 0 is for ever. It is judged if ok.
func (l *Allocation) healthRule() (shortest, deadline time.Duration, ok bool) {
	var minimum *time.Duration
	switch t := l.Alloc.Job.Type; {
	case t != drover.JobTypeService && t != drover.JobTypeSystem:
		return 0, 0, false
	case l.Alloc.DeploymentID != "" && l.group.Update != nil:
		minimum, deadline = l.group.Update.MinHealthyTime, l.group.Update.HealthyDeadline
	case l.Alloc.DeploymentID == "" && l.group.Migrate != nil:
		minimum, deadline = l.group.Migrate.MinHealthyTime, l.group.Migrate.HealthyDeadline
	default:
		return 0, 0, false
	}
	if minimum == nil {
		return 10 * time.Second, deadline, true
	}
	return *minimum, deadline, true
}

// judge sets the allocation's health in its deployment once and for all. Whether it is a canary is control's word and stays.
func (l *Allocation) judge(healthy bool) {
	l.health.rest()
	l.health.found = &drover.AllocDeploymentStatus{Healthy: new(healthy), Timestamp: l.n.Clock()}
	if s := l.Alloc.DeploymentStatus; s != nil {
		l.health.found.Canary = s.Canary
	}
}
