package allocrunner

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/network"
)

// settle does what is due where the tasks stand now, and reports what changed.
func (r *Runner) settle() {
	r.react()
	r.advanceKill()
	r.revive()
	r.openGates()
	r.updateChecks()
	r.watchHealth()
	r.report()
}

// takeOrders reads what control wants.
func (r *Runner) takeOrders() {
	r.mu.Lock()
	alloc, remove, noDelay := r.latest, r.remove, r.hasten
	r.mu.Unlock()
	if alloc != r.alloc {
		r.take(alloc)
	}
	noDelay = noDelay || alloc.DesiredTransition.NoShutdownDelay != nil && *alloc.DesiredTransition.NoShutdownDelay
	if alloc.ServerTerminal() || remove {
		r.stopReviving()
		r.health.rest()
		r.startKill(taskmachine.Kill{NoDelay: noDelay})
	}
	if noDelay {
		r.hurry()
	}
}

// take makes another version of the allocation the one that counts. What an update in place changes (policies, timeouts,
// health, max_run_duration) counts for the running tasks from now on.
func (r *Runner) take(alloc *drover.Allocation) {
	r.alloc = alloc
	if g := alloc.Job.Group(alloc.TaskGroup); r.runs(g) {
		r.mu.Lock()
		r.group, r.spec = g, g
		r.mu.Unlock()
	}
	for _, t := range r.group.Tasks {
		r.tasks[t.Name].Update(alloc, r.group, t)
	}
	r.cfg.Shared.State.Queue(localstate.PutAlloc(alloc))
	r.limitRun()
	r.rewatch()
}

// runs reports whether the group has the tasks that the runner has: no update in place takes or adds one.
func (r *Runner) runs(g *drover.TaskGroup) bool {
	if g == nil || len(g.Tasks) != len(r.tasks) {
		return false
	}
	for _, t := range g.Tasks {
		if r.tasks[t.Name] == nil {
			return false
		}
	}
	return true
}

// react ends tasks because of what became of others.
func (r *Runner) react() {
	if r.kill != nil || r.reviving {
		return
	}
	leaderDead, failed := false, ""
	for _, t := range r.group.Tasks {
		s := r.state(t.Name)
		if s.State != drover.TaskStateDead || stageOf(t) == stagePoststop {
			continue
		}
		leaderDead = leaderDead || t.Leader
		if s.Failed && failed == "" {
			failed = t.Name
		}
	}
	switch {
	case failed != "": // a leader that failed is told as any that did
		r.startKill(taskmachine.Kill{Type: drover.TaskSiblingFailed, Sibling: failed})
	case leaderDead:
		r.startKill(taskmachine.Kill{Type: drover.TaskLeaderDead})
	case onlySidecarsLeft(r.group.Tasks, r.state):
		r.startKill(taskmachine.Kill{Type: drover.TaskMainDead})
	}
}

// openGates starts the tasks whose turn has come.
func (r *Runner) openGates() {
	if r.restored && !r.contacted {
		return
	}
	left := onlyPoststopLeft(r.group.Tasks, r.state)
	if r.kill == nil && !r.reviving {
		r.opened = max(r.opened, open(r.group.Tasks, r.state))
	}
	for _, t := range r.group.Tasks {
		s := stageOf(t)
		switch {
		case r.tasks[t.Name].Status().Phase != taskmachine.Pending:
		case s == stagePoststop && left && r.noPost:
			r.apply(t.Name, taskmachine.Kill{})
		case s == stagePoststop && left && !r.reviving:
			r.apply(t.Name, taskmachine.Go{})
		case s != stagePoststop && s <= r.opened && r.kill == nil && !r.reviving:
			r.apply(t.Name, taskmachine.Go{})
		}
	}
}

// observe says what there is to report now.
func (r *Runner) observe() exchange.AllocUpdate {
	u := exchange.AllocUpdate{ID: r.id, TaskStates: make(map[string]*drover.TaskState, len(r.tasks)), DeploymentStatus: r.health.status}
	if u.DeploymentStatus != nil {
		u.DeploymentID = r.health.deployment
	}
	for name, t := range r.tasks {
		u.TaskStates[name] = t.Status().State
	}
	u.NetworkStatus, u.FailingServices = r.observedNetwork(), r.failingServices()
	u.ClientStatus, u.ClientDescription = ClientStatus(u.TaskStates)
	switch {
	case r.reviving:
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Tasks are being restarted"
	case r.timedOut && r.ended():
		u.ClientStatus, u.ClientDescription = drover.AllocClientComplete, "Allocation exceeded its max_run_duration"
	case u.ClientStatus == drover.AllocClientPending && onlyPoststopLeft(r.group.Tasks, r.state):
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Poststop tasks are due"
	case u.ClientStatus == drover.AllocClientPending && r.kill != nil && r.reported.ClientStatus == drover.AllocClientRunning:
		// One task has ended, another is stopped before it ran: the allocation does not go back.
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Tasks are being stopped"
	case u.ClientStatus == drover.AllocClientFailed && !r.ended():
		// Its resources are held until the last task has ended, and failed would free them.
		u.ClientStatus, u.ClientDescription = drover.AllocClientRunning, "Failed tasks, others are being stopped"
	}
	return u
}

// observedNetwork is the address in the allocation's own network, if it has one: of a task's driver, else of the group.
func (r *Runner) observedNetwork() *network.Status {
	for _, t := range r.tasks {
		if h := t.Handle(); h != nil {
			if n := h.Network(); n != nil {
				return n
			}
		}
	}
	if n := r.cfg.Shared.Networks; n != nil {
		return n.Status(r.id)
	}
	return nil
}

// report tells the agent of a change.
func (r *Runner) report() {
	u := r.observe()
	last := r.reported
	if u.ClientStatus == last.ClientStatus && u.ClientDescription == last.ClientDescription &&
		maps.Equal(u.TaskStates, last.TaskStates) && u.DeploymentStatus == last.DeploymentStatus &&
		reflect.DeepEqual(u.NetworkStatus, last.NetworkStatus) && slices.Equal(u.FailingServices, last.FailingServices) {
		return
	}
	u.Time = r.clock.Now().UnixNano()
	r.reported = u
	r.mu.Lock()
	r.view.Update = u
	r.mu.Unlock()
	r.cfg.Report(u)
}

// limitRun makes the timer of max_run_duration, which counts from the allocation's making, again if it changed.
func (r *Runner) limitRun() {
	d := time.Duration(0)
	if r.group.MaxRunDuration != nil {
		d = *r.group.MaxRunDuration
	}
	if d == r.longest || r.timedOut {
		return
	}
	if r.limit != nil {
		r.limit.Stop()
		r.limit = nil
	}
	r.longest = d
	if d <= 0 {
		return
	}
	over := time.Unix(0, r.alloc.CreateTime).Add(d)
	var t clock.Timer
	t = r.after(over.Sub(r.clock.Now()), func() {
		if r.limit == t { // it was not stopped meanwhile
			r.timeOut()
		}
	})
	r.limit = t
}

// timeOut ends the allocation because of max_run_duration, and lets no poststop task run. It is stored first, so that an
// agent which restarts in the middle knows why the allocation ends.
func (r *Runner) timeOut() {
	r.stopReviving()
	r.timedOut, r.noPost = true, true
	r.cfg.Shared.State.Queue(localstate.PutStatus(r.id, r.standing(0)))
	for _, t := range r.group.Tasks {
		if stageOf(t) == stagePoststop {
			r.apply(t.Name, taskmachine.Kill{})
		}
	}
	r.startKill(taskmachine.Kill{Type: drover.TaskMaxRunDurationOver, Reason: "Allocation exceeded its max_run_duration"})
}
