package leader

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/scheduler/reconcile"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/tables"
)

// progress is what the watcher has reacted to of a deployment.
type progress struct{ healthy, unhealthy, promoted int }

// watchDeployments has the scheduler go on when allocations became healthy, promotes canaries that asked for it, and
// fails what makes no progress.
func (l *Leader) watchDeployments(ctx context.Context, log Log) {
	var watched Rollouts
	for {
		changed := l.deps.Store.Watch(tables.Deployments, "")
		s, now, wait := l.deps.Store.Snapshot(), l.deps.Clock.Now(), time.Hour
		for d := range s.Deployments("*", "") {
			c, due := watched.Step(s, d, now, l.maker())
			wait = min(wait, due) // what is proposed now need not touch the deployment: its deadline is waited for all the same
			if c == nil {
				continue
			}
			if _, _, err := log.Propose(ctx, c); err != nil && ctx.Err() == nil {
				l.deps.Logger.Warn("cannot advance deployment", "deployment", d.ID, "job", d.JobID, "error", err)
				watched.Forget(d.ID)
				wait = min(wait, retryDelay)
			}
		}
		if !clock.Await(ctx, l.deps.Clock, wait, changed) {
			return
		}
	}
}

// Rollouts remembers of each running deployment what was reacted to. It is a value; the zero one knows nothing.
type Rollouts struct{ seen map[string]progress }

// Forget makes the next Step react again: what it returned was not committed.
func (r *Rollouts) Forget(deploymentID string) { delete(r.seen, deploymentID) }

// Step returns what is to be done about a deployment now, nil if nothing, and after what time to look again if nothing
// changes.
func (r *Rollouts) Step(s *store.Snapshot, d *drover.Deployment, now time.Time, m trigger.Maker) (command.Command, time.Duration) {
	if d.Status != drover.DeploymentRunning {
		r.Forget(d.ID)
		return nil, time.Hour
	}
	return r.advance(s, d, now, m), untilDeadline(d, now)
}

// advance returns the first that applies: failing the deployment, promoting its canaries, or an evaluation because the
// numbers changed. It remembers the numbers, so that each change is reacted to once.
func (r *Rollouts) advance(s *store.Snapshot, d *drover.Deployment, now time.Time, m trigger.Maker) command.Command {
	j := s.Job(d.Namespace, d.JobID)
	if j == nil || j.Version != d.JobVersion || j.CreateIndex != d.JobCreateIndex {
		return nil // the scheduler cancels it
	}
	eval := m.Job(j, drover.TriggerDeploymentWatcher)
	eval.DeploymentID = d.ID
	evals := []*drover.Evaluation{eval}
	if why, revert := failure(s, d, now); why != "" {
		update, target := intake.Failure(s, d, why, revert)
		return &command.UpdateDeploymentStatus{Update: update, Job: target, Evals: evals, Time: m.Now}
	}
	if promotable(s, d) {
		return &command.PromoteDeployment{DeploymentID: d.ID, Evals: evals, Time: m.Now}
	}
	p := progressOf(d)
	if before, known := r.seen[d.ID]; known && before == p {
		return nil
	}
	if r.seen == nil {
		r.seen = map[string]progress{}
	}
	r.seen[d.ID] = p
	return &command.UpdateEvals{Evals: evals}
}

// progressOf sums up the groups: a change anywhere lets the scheduler go on.
func progressOf(d *drover.Deployment) progress {
	var p progress
	for _, g := range d.TaskGroups {
		p.healthy += g.HealthyAllocs
		p.unhealthy += g.UnhealthyAllocs
		if g.Promoted {
			p.promoted++
		}
	}
	return p
}

// failure says why the deployment is to fail now, "" if it is not; and whether a group that fails it wants the last
// stable version back.
func failure(s *store.Snapshot, d *drover.Deployment, now time.Time) (why string, revert bool) {
	hopeless := hopelessGroups(s, d, now)
	for name, g := range d.TaskGroups {
		switch {
		case hopeless[name] || g.ProgressDeadline == 0 && g.UnhealthyAllocs > 0:
			why, revert = intake.FailedByHealth, revert || g.AutoRevert
		case g.Late(now):
			revert = revert || g.AutoRevert
			if why == "" {
				why = "Failed due to progress deadline"
			}
		}
	}
	return why, revert
}

// hopelessGroups are those with an unhealthy allocation that the reschedule policy does not replace any more.
func hopelessGroups(s *store.Snapshot, d *drover.Deployment, now time.Time) map[string]bool {
	unhealthy := 0
	for _, g := range d.TaskGroups {
		unhealthy += g.UnhealthyAllocs
	}
	if unhealthy == 0 {
		return nil
	}
	groups := map[string]bool{}
	for a := range s.ActiveAllocationsByJob(d.Namespace, d.JobID) {
		h := a.DeploymentStatus
		if a.DeploymentID == d.ID && !a.ServerTerminal() && h != nil && h.Healthy != nil && !*h.Healthy &&
			a.NextAllocation == "" && !reconcile.Reschedulable(a, now) {
			groups[a.TaskGroup] = true
		}
	}
	return groups
}

// untilDeadline says when a deadline will have passed. One that has is dealt with, or is not ours: of a version that
// the scheduler has still to take the deployment from.
func untilDeadline(d *drover.Deployment, now time.Time) time.Duration {
	wait := time.Hour
	for _, g := range d.TaskGroups {
		if g.Waiting() && g.RequireProgressBy.After(now) {
			wait = min(wait, g.RequireProgressBy.Sub(now))
		}
	}
	return wait
}

// promotable reports whether all canaries are healthy and all groups that have some want to be promoted by that.
func promotable(s *store.Snapshot, d *drover.Deployment) bool {
	canaries := false
	for _, g := range d.TaskGroups {
		if g.DesiredCanaries == 0 || g.Promoted {
			continue
		}
		canaries = true
		healthy := 0
		for _, id := range g.PlacedCanaries {
			a := s.Allocation(id)
			if a != nil && !a.Terminal() && a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil && *a.DeploymentStatus.Healthy {
				healthy++
			}
		}
		if !g.AutoPromote || healthy < g.DesiredCanaries {
			return false
		}
	}
	return canaries
}
