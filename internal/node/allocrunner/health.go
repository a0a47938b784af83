package allocrunner

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// health watches whether an allocation is well: all its tasks run for min_healthy_time without a restart. What was found
// stays, whatever becomes of the allocation, until it joins another deployment: then it has to be well anew.
// With health_check = "checks" the checks of its services have to pass for that time, too.
type health struct {
	deployment string // that status belongs to
	status     *drover.AllocDeploymentStatus
	watching   bool
	since      time.Time // when the watch began
	rule       healthRule
	deadline   clock.Timer
	well       clock.Timer // runs while all tasks are well
	restarts   uint64      // when it was started
}

// healthRule says when an allocation is healthy, and when it was not in time. It is comparable.
type healthRule struct {
	minTime, deadline time.Duration // deadline 0 = none
	checks            bool          // those of services have to pass
}

// judged reports whether it was said already whether the allocation is healthy. That is said once a deployment.
func (h *health) judged() bool { return h.status != nil && h.status.Healthy != nil }

// rest ends the watch.
func (h *health) rest() {
	h.watching = false
	for _, t := range []*clock.Timer{&h.deadline, &h.well} {
		if *t != nil {
			(*t).Stop()
			*t = nil
		}
	}
}

// rewatch begins to watch when somebody wants to know, and begins anew when the allocation joined another deployment.
func (r *Runner) rewatch() {
	a, h := r.alloc, &r.health
	if a.DeploymentID != h.deployment {
		h.rest()
		*h = health{deployment: a.DeploymentID}
		r.cfg.Shared.State.Queue(localstate.PutStatus(r.id, r.standing(0)))
	}
	if h.judged() || a.ServerTerminal() || r.group.Pool != nil || r.saidByOthers() {
		h.rest()
		return
	}
	rule, ok := r.healthRule()
	switch {
	case !ok:
		h.rest()
		return
	case h.watching && h.rule == rule:
		return
	}
	h.rest()
	h.watching, h.rule, h.since = true, rule, r.clock.Now()
	if rule.deadline > 0 {
		var t clock.Timer
		t = r.after(rule.deadline, func() {
			if h.deadline == t { // it was not stopped meanwhile
				what := "the tasks did not run"
				if rule.checks && r.checks.decides && r.checks.passing.IsZero() {
					what = "the checks of services did not pass"
				}
				r.judge(false, fmt.Sprintf("Unhealthy because %s for min_healthy_time (%v) by healthy_deadline (%v)",
					what, rule.minTime, rule.deadline))
			}
		})
		h.deadline = t
	}
}

// saidByOthers reports whether the health of the allocation in its deployment was set by hand.
func (r *Runner) saidByOthers() bool {
	s := r.alloc.DeploymentStatus
	return r.alloc.DeploymentID != "" && s != nil && s.Healthy != nil
}

// healthRule is the rollout's, or for a plain service that of its migration.
func (r *Runner) healthRule() (rule healthRule, ok bool) {
	if t := r.alloc.Job.Type; t != drover.JobTypeService && t != drover.JobTypeSystem {
		return healthRule{}, false
	}
	check := ""
	var shortest *time.Duration
	switch {
	case r.alloc.DeploymentID != "" && r.group.Update != nil:
		check, shortest, rule.deadline = r.group.Update.HealthCheck, r.group.Update.MinHealthyTime, r.group.Update.HealthyDeadline
	case r.alloc.DeploymentID == "" && r.group.Migrate != nil:
		check, shortest, rule.deadline = r.group.Migrate.HealthCheck, r.group.Migrate.MinHealthyTime, r.group.Migrate.HealthyDeadline
	default:
		return healthRule{}, false
	}
	rule.minTime = 10 * time.Second
	if shortest != nil {
		rule.minTime = *shortest
	}
	rule.checks = check == "checks"
	return rule, check != "manual"
}

// watchHealth looks at the tasks after every change.
func (r *Runner) watchHealth() {
	h := &r.health
	if !h.watching && !r.failedUnwatched() {
		return
	}
	well, failed, restarts := r.wellness()
	if h.rule.checks && r.checks.decides {
		well = well && !r.checks.passing.IsZero()
	}
	if failed != "" {
		r.judge(false, fmt.Sprintf("Unhealthy because task %q failed", failed))
		return
	}
	if h.well != nil && (!well || restarts != h.restarts) {
		h.well.Stop()
		h.well = nil
	}
	if well && h.well == nil {
		h.restarts = restarts
		var t clock.Timer
		t = r.after(h.rule.minTime-r.clock.Now().Sub(r.wellSince()), func() {
			if h.well == t { // it was not stopped meanwhile
				r.judge(true, "")
			}
		})
		h.well = t
	}
}

// wellSince is when the last task began to run, or the watch if that was later. It is not when the agent got round to
// look: a task that ends right after min_healthy_time was healthy.
func (r *Runner) wellSince() time.Time {
	last := r.health.since
	if r.health.rule.checks && r.checks.passing.After(last) {
		last = r.checks.passing
	}
	for _, t := range r.group.Tasks {
		if s := r.state(t.Name); s.StartedAt.After(last) {
			last = s.StartedAt
		}
	}
	return last
}

// failedUnwatched reports whether the allocation failed where health is said by hand: nobody will say more of it.
func (r *Runner) failedUnwatched() bool {
	return r.alloc.DeploymentID != "" && !r.health.judged() && !r.saidByOthers() && !r.alloc.ServerTerminal() &&
		r.group.Pool == nil && r.ended() && r.anyFailed()
}

// anyFailed reports whether a task is not well and will not be.
func (r *Runner) anyFailed() bool {
	_, failed, _ := r.wellness()
	return failed != ""
}

// wellness reports whether the allocation is well: main tasks and sidecars run, other prestart and poststart tasks run
// or ended without failure, and nothing is being stopped. The name of a task that cannot become well is in failed. The
// number of restarts is that of all tasks together.
func (r *Runner) wellness() (well bool, failed string, restarts uint64) {
	well = !r.reviving
	for _, t := range r.group.Tasks {
		s := r.state(t.Name)
		restarts += s.Restarts
		stage := stageOf(t)
		if stage == stagePoststop || r.reviving {
			continue
		}
		mayEnd := stage != stageMain && !sidecar(t)
		switch {
		case s.Failed || s.State == drover.TaskStateDead && !mayEnd:
			if failed == "" || s.Failed && !r.state(failed).Failed {
				failed = t.Name
			}
		case s.State == drover.TaskStatePending:
			well = false
		}
	}
	return well && failed == "" && r.kill == nil, failed, restarts
}

// judge says what was found. In a rollout the history of each task gets the reason why it is unhealthy.
func (r *Runner) judge(healthy bool, why string) {
	h := &r.health
	h.rest()
	h.status = &drover.AllocDeploymentStatus{Healthy: new(healthy), Timestamp: r.clock.Now()}
	if s := r.alloc.DeploymentStatus; s != nil {
		h.status.Canary = s.Canary
	}
	if !healthy && r.alloc.DeploymentID != "" {
		for _, t := range r.group.Tasks {
			r.apply(t.Name, taskmachine.Noted{Event: taskmachine.NewEvent(drover.TaskAllocUnhealthy, why)})
		}
	}
	r.cfg.Shared.State.Queue(localstate.PutStatus(r.id, r.standing(0)))
}
