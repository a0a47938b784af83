package allocrunner

import (
	"time"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/localstate"
)

// health watches whether an allocation of a rollout is well: all its tasks run for min_healthy_time without a restart.
// Checks of services are not run on a node yet: with health_check = "checks" an allocation without them is judged by
// its tasks, as Nomad does.
type health struct {
	status   *drover.AllocDeploymentStatus
	watching bool
	minTime  time.Duration
	deadline clock.Timer
	well     clock.Timer // runs while all tasks are well
	restarts uint64      // when it was started
}

// rewatch begins to watch when the allocation belongs to a rollout that wants to know.
func (r *Runner) rewatch() {
	a := r.alloc
	if r.health.watching || r.health.status != nil && r.health.status.Healthy != nil || a.ServerTerminal() || r.group.Pool != nil {
		return
	}
	if a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil && a.DeploymentID != "" {
		return // somebody has said it
	}
	minTime, deadline, ok := r.healthRule()
	if !ok {
		return
	}
	r.health.watching, r.health.minTime = true, minTime
	if deadline > 0 {
		r.health.deadline = r.after(deadline, func() { r.judge(false) })
	}
}

// healthRule is the rollout's, or for a plain service that of its migration.
func (r *Runner) healthRule() (minTime, deadline time.Duration, ok bool) {
	if t := r.alloc.Job.Type; t != drover.JobTypeService && t != drover.JobTypeSystem {
		return 0, 0, false
	}
	check := ""
	var shortest *time.Duration
	switch {
	case r.alloc.DeploymentID != "" && r.group.Update != nil:
		check, shortest, deadline = r.group.Update.HealthCheck, r.group.Update.MinHealthyTime, r.group.Update.HealthyDeadline
	case r.alloc.DeploymentID == "" && r.group.Migrate != nil:
		check, shortest, deadline = r.group.Migrate.HealthCheck, r.group.Migrate.MinHealthyTime, r.group.Migrate.HealthyDeadline
	default:
		return 0, 0, false
	}
	minTime = 10 * time.Second
	if shortest != nil {
		minTime = *shortest
	}
	return minTime, deadline, check != "manual"
}

// watchHealth looks at the tasks after every change.
func (r *Runner) watchHealth() {
	if !r.health.watching {
		if r.health.status == nil && r.alloc.DeploymentID != "" && r.alloc.DeploymentStatus == nil && r.ended() {
			if _, failed, _ := r.wellness(); failed {
				r.health.watching = true // nobody will say more of it
				r.judge(false)
			}
		}
		return
	}
	well, failed, restarts := r.wellness()
	switch {
	case failed && r.alloc.DeploymentID != "":
		r.judge(false)
	case failed:
		r.health.watching = false
	case !well || restarts != r.health.restarts:
		if r.health.well != nil {
			r.health.well.Stop()
			r.health.well = nil
		}
	}
	if well && r.health.watching && r.health.well == nil {
		r.health.restarts = restarts
		var t clock.Timer
		t = r.after(r.health.minTime, func() {
			if r.health.well == t { // it was not stopped meanwhile
				r.judge(true)
			}
		})
		r.health.well = t
	}
}

// wellness: prestart and poststart tasks may have ended, main tasks must run.
func (r *Runner) wellness() (well, failed bool, restarts uint64) {
	well = true
	for _, t := range r.group.Tasks {
		s := r.state(t.Name)
		restarts += s.Restarts
		stage := stageOf(t)
		if stage == stagePoststop {
			continue
		}
		mayEnd := stage != stageMain && !sidecar(t)
		switch {
		case s.Failed || s.State == drover.TaskStateDead && !mayEnd:
			failed = true
		case s.State == drover.TaskStatePending:
			well = false
		}
	}
	return well && !failed && r.kill == nil, failed, restarts
}

func (r *Runner) judge(healthy bool) {
	if !r.health.watching {
		return
	}
	r.health.watching = false
	status := &drover.AllocDeploymentStatus{Healthy: new(healthy), Timestamp: r.clock.Now()}
	if s := r.alloc.DeploymentStatus; s != nil {
		status.Canary = s.Canary
	}
	r.health.status = status
	r.cfg.Shared.State.Queue(localstate.PutStatus(r.id, r.standing(0)))
}
