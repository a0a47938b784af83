package allocrunner

import (
	"maps"
	"reflect"
	"time"

	"drover"
	"drover/internal/node/localstate"
	"drover/internal/node/taskmachine"
)

// settle does what is due where the tasks stand now, and reports what changed.
func (r *Runner) settle() {
	r.react()
	r.advanceKill()
	r.revive()
	r.openGates()
	r.watchHealth()
	r.report()
}

// takeOrders reads what control wants.
func (r *Runner) takeOrders() {
	r.mu.Lock()
	alloc, remove, noDelay := r.latest, r.remove, r.hasten
	r.mu.Unlock()
	if alloc != r.alloc {
		r.alloc = alloc
		for _, t := range r.tasks {
			t.Update(alloc)
		}
		r.cfg.Shared.State.Queue(localstate.PutAlloc(r.alloc))
		r.rewatch()
	}
	noDelay = noDelay || alloc.DesiredTransition.NoShutdownDelay != nil && *alloc.DesiredTransition.NoShutdownDelay
	if alloc.ServerTerminal() || remove {
		r.reviving = false
		r.startKill(taskmachine.Kill{NoDelay: noDelay})
	}
	if noDelay {
		r.hurry()
	}
}

// react ends tasks because of what became of others (reference/nomad.md section 1.1).
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
	case leaderDead:
		r.startKill(taskmachine.Kill{Type: drover.TaskLeaderDead})
	case failed != "":
		r.startKill(taskmachine.Kill{Type: drover.TaskSiblingFailed, Sibling: failed})
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
func (r *Runner) observe() drover.AllocUpdate {
	u := drover.AllocUpdate{ID: r.id, TaskStates: make(map[string]*drover.TaskState, len(r.tasks)), DeploymentStatus: r.health.status}
	for name, t := range r.tasks {
		u.TaskStates[name] = t.Status().State
		if h := t.Handle(); h != nil && u.NetworkStatus == nil {
			u.NetworkStatus = h.Network()
		}
	}
	if n := r.cfg.Shared.Networks; n != nil && u.NetworkStatus == nil {
		u.NetworkStatus = n.Status(r.id)
	}
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

// report tells the agent of a change.
func (r *Runner) report() {
	u := r.observe()
	last := r.reported
	if u.ClientStatus == last.ClientStatus && u.ClientDescription == last.ClientDescription &&
		maps.Equal(u.TaskStates, last.TaskStates) && u.DeploymentStatus == last.DeploymentStatus &&
		reflect.DeepEqual(u.NetworkStatus, last.NetworkStatus) {
		return
	}
	u.Time = r.clock.Now().UnixNano()
	r.reported = u
	r.mu.Lock()
	r.view.Update = u
	r.mu.Unlock()
	r.cfg.Report(u)
}

// startClocks begins max_run_duration, which counts from the allocation's making.
func (r *Runner) startClocks() {
	if d := r.group.MaxRunDuration; d != nil && *d > 0 {
		over := time.Unix(0, r.alloc.CreateTime).Add(*d)
		r.after(over.Sub(r.clock.Now()), r.timeOut)
	}
	r.rewatch()
}

func (r *Runner) timeOut() {
	r.timedOut, r.noPost, r.reviving = true, true, false
	r.cfg.Shared.State.Queue(localstate.PutStatus(r.id, r.standing(0)))
	for _, t := range r.group.Tasks {
		if stageOf(t) == stagePoststop {
			r.apply(t.Name, taskmachine.Kill{})
		}
	}
	r.startKill(taskmachine.Kill{Type: drover.TaskMaxRunDurationOver, Reason: "Allocation exceeded its max_run_duration"})
}
