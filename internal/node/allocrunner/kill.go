package allocrunner

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// killing is an end under way. Each stage begins when the one before has ended.
type killing struct {
	cause taskmachine.Kill
	stage killStage
	due   bool // the group's shutdown_delay is over
}

// killStage is how far an end is. The order is Nomad's: the leader, then all but the sidecars, then the sidecars, which
// serve the others up to their end. Poststop tasks are no part of it; they start afterwards.
type killStage uint8

const (
	killDelay killStage = iota
	killLeader
	killMain
	killSidecars
	killDone
)

// startKill begins the end; a second one changes nothing.
func (r *Runner) startKill(cause taskmachine.Kill) {
	if r.kill != nil {
		return
	}
	r.kill = &killing{cause: cause}
	delay := r.group.ShutdownDelay
	if delay == nil || *delay <= 0 || cause.NoDelay || !r.anythingRuns() {
		r.kill.due = true
		return
	}
	k := r.kill
	r.after(*delay, func() { k.due = true })
}

// hurry skips the delays of an end under way.
func (r *Runner) hurry() {
	if r.kill == nil {
		return
	}
	r.kill.due, r.kill.cause.NoDelay = true, true
	for _, t := range r.tasks {
		if t.Status().Killed {
			t.Hurry()
		}
	}
}

// anythingRuns reports whether a task runs, without which there is no traffic to wait for.
func (r *Runner) anythingRuns() bool {
	for _, t := range r.tasks {
		if t.Status().Phase == taskmachine.Running {
			return true
		}
	}
	return false
}

// advanceKill goes on as far as it can.
func (r *Runner) advanceKill() {
	for r.kill != nil && r.kill.stage != killDone {
		if r.kill.stage == killDelay && !r.kill.due {
			return
		}
		if !r.killAll(r.inStage) {
			return
		}
		r.kill.stage++
	}
}

// inStage reports whether the task belongs to the stage that the end is in.
func (r *Runner) inStage(t *drover.Task) bool {
	if stageOf(t) == stagePoststop {
		return false
	}
	switch r.kill.stage {
	case killLeader:
		return t.Leader
	case killMain:
		return !sidecar(t)
	case killSidecars:
		return true
	case killDelay, killDone:
	}
	return false
}

// killAll tells the tasks to end and reports whether they have.
func (r *Runner) killAll(which func(*drover.Task) bool) bool {
	dead := true
	for _, t := range r.group.Tasks {
		if which(t) {
			r.apply(t.Name, r.causeFor(t))
			dead = dead && r.tasks[t.Name].Status().Phase == taskmachine.Dead
		}
	}
	return dead
}

// causeFor is the cause as the task is told it: a sidecar goes because what it served has gone.
func (r *Runner) causeFor(t *drover.Task) taskmachine.Kill {
	cause := r.kill.cause
	if cause.Type == "" && sidecar(t) {
		cause.Type = drover.TaskMainDead
	}
	return cause
}
