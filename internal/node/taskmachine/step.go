package taskmachine

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
)

// Step makes one transition. jitter is a number in [0, 1) used for the restart delay. An event that means nothing in
// the phase changes nothing. The effects are to be performed in order.
func Step(v View, s Status, ev Event, now time.Time, jitter float64) (Status, []Effect) {
	m := machine{view: v, Status: s, now: now, jitter: jitter}
	m.step(ev)
	return m.Status, m.effects
}

// machine is one step under way.
type machine struct {
	Status
	view    View
	now     time.Time
	jitter  float64
	effects []Effect
}

// do, to and note collect what the step brings about: effects in their order, a phase, and a line of the task's history.
func (m *machine) do(e ...Effect)           { m.effects = append(m.effects, e...) }
func (m *machine) to(p Phase)               { m.move(p, m.now) }
func (m *machine) note(e *drover.TaskEvent) { m.record(e, m.now) }

// in reports whether the phase is one of these.
func (m *machine) in(phases ...Phase) (yes bool) {
	for _, p := range phases {
		yes = yes || m.Phase == p
	}
	return yes
}

// step hands the event to the function for it. Answers of effects may come late, after a kill or an end: each function
// says in which phases its event counts.
func (m *machine) step(ev Event) {
	switch ev := ev.(type) {
	case Go:
		if m.Phase == Pending {
			m.prepare()
		}
	case Prepared:
		m.prepared()
	case PrepareFailed:
		m.prepareFailed(ev)
	case Started:
		m.started()
	case StartFailed:
		m.startFailed(ev)
	case Exited:
		m.exited(ev)
	case Kill:
		m.kill(ev)
	case Restart:
		m.restart(ev)
	case Revive:
		if m.Phase == Dead {
			m.revive()
		}
	case Due:
		if m.Phase == Backoff {
			m.prepare()
		}
	case Restored:
		m.restored()
	case RestoredExit:
		if m.Phase == Pending {
			m.restoredExit(Exited(ev))
		}
	case RestoreFailed:
		m.restoreFailed(ev)
	case StopFailed:
		m.stopFailed(ev)
	case Noted:
		m.note(ev.Event)
	}
}

// prepare begins a start. The time counts from here, so that a start which fails at once counts as a quick end too.
func (m *machine) prepare() {
	m.to(Preparing)
	m.began = m.now
	m.do(Prepare{})
}

// prepared goes on to the driver, unless the task was told to end while its hooks ran.
func (m *machine) prepared() {
	switch m.Phase {
	case Preparing:
		m.to(Starting)
		m.do(Launch{})
	case Stopping: // it was cancelled
		m.finishStop()
	case Pending, Starting, Running, Backoff, Dead: // late: nobody waits for it
	}
}

// prepareFailed lets the restart policy decide. The failure of a cancelled preparation is no event of its own.
func (m *machine) prepareFailed(ev PrepareFailed) {
	switch m.Phase {
	case Preparing:
		m.note(final(setupFailureEvent(ev), !ev.Recoverable))
		m.ended(false, !ev.Recoverable)
	case Stopping:
		m.finishStop()
	case Pending, Starting, Running, Backoff, Dead: // late
	}
}

// started notes that the driver has the task. One that was told to end meanwhile is stopped at once, without its
// shutdown_delay.
func (m *machine) started() {
	m.handle = true
	switch m.Phase {
	case Starting:
		m.Ran, m.began = true, m.now
		m.to(Running)
		m.note(newEvent(drover.TaskStarted, "Task started by client"))
		m.do(Await{})
	case Stopping: // killed while it started
		m.Ran = true
		m.do(Await{}, Stop{Signal: m.view.KillSignal, Timeout: m.view.KillTimeout})
	case Pending, Preparing, Running, Backoff, Dead: // late
	}
}

// startFailed lets the restart policy decide. The driver has cleaned up by itself: there is no handle to destroy.
func (m *machine) startFailed(ev StartFailed) {
	switch m.Phase {
	case Starting:
		m.note(final(driverFailureEvent(ev.Reason), !ev.Recoverable))
		m.ended(false, !ev.Recoverable)
	case Stopping:
		m.finishStop()
	case Pending, Preparing, Running, Backoff, Dead: // late
	}
}

// exited frees what the driver holds before anything new begins. Then the task is dead, restarts, or ends a stop.
func (m *machine) exited(ev Exited) {
	if !m.in(Running, Stopping) {
		return
	}
	m.note(terminatedEvent(ev))
	m.release()
	if m.Phase == Stopping {
		m.finishStop()
		return
	}
	if m.view.Pool {
		m.note(notRestartingEvent(reasonPool))
		m.finish()
		return
	}
	m.ended(!ev.Failed(), false)
}

// ended asks the restart policy what becomes of a task that nobody stopped.
func (m *machine) ended(success, unrecoverable bool) {
	if m.view.Pool && m.Ran {
		m.note(notRestartingEvent(reasonPool))
		m.finish()
		return
	}
	tracker, v := m.Tracker.decide(m.view.Policy, m.view.Once, success, unrecoverable, m.jitter, m.now)
	if !m.began.IsZero() && tracker.lived(m.now.Sub(m.began)) {
		v = tracker.slow(v)
	}
	m.Tracker = tracker
	switch {
	case v.restart:
		m.note(restartingEvent(v.reason, v.delay))
		m.to(Backoff)
		m.do(Wake{v.delay})
	case v.failed:
		m.note(notRestartingEvent(v.reason))
		m.finish()
	default:
		m.finish()
	}
}

// finish makes the task dead.
func (m *machine) finish() {
	m.release()
	m.to(Dead)
	m.do(Finish{})
}

// release frees the driver's part of the last start, at most once a start.
func (m *machine) release() {
	if m.handle {
		m.handle = false
		m.do(Destroy{})
	}
}

// finishStop ends a stop: the task is dead, or starts again if the stop was a restart.
func (m *machine) finishStop() {
	m.release()
	if m.again && !m.Killed {
		m.again = false
		if m.failing {
			m.failing = false
			m.ended(false, false)
			return
		}
		m.note(restartingEvent("", 0))
		m.prepare()
		return
	}
	m.again, m.failing = false, false
	if !m.comesBack {
		m.note(killedEvent())
	}
	m.finish()
}

// killing notes that the task is told to end; not of one that is started again by the restart of all.
func (m *machine) killing(ev Kill) {
	if !m.comesBack {
		m.note(killingEvent(ev.Reason, m.view.KillTimeout))
	}
}

// kill takes the first order to end the task; later ones change nothing, except that a real kill overrides the restart
// of all. The order holds over an agent's restart, since Killed is stored.
func (m *machine) kill(ev Kill) {
	switch {
	case m.Phase == Dead:
		return
	case m.Killed:
		if m.comesBack && ev.Type != drover.TaskRestartSignal { // it does not come back after all
			m.comesBack = false
			m.killing(ev)
		}
		return
	}
	m.Killed, m.comesBack = true, ev.Type == drover.TaskRestartSignal
	if ev.Type != "" {
		m.note(causeEvent(ev))
	} else if ev.Fails {
		m.fail()
	}
	switch m.Phase {
	case Pending:
		if ev.Type == drover.TaskSiblingFailed {
			m.killing(ev)
		}
		m.finish()
	case Backoff:
		m.finish()
	case Preparing, Starting:
		m.killing(ev)
		m.to(Stopping)
		m.do(Cancel{})
	case Running:
		m.killing(ev)
		m.stop(ev.NoDelay)
	case Stopping, Dead: // it ends, or has
	}
}

// stop asks the driver to end the running task. noDelay leaves out the shutdown_delay, which gives a load balancer the
// time to forget the task.
func (m *machine) stop(noDelay bool) {
	effect := Stop{Signal: m.view.KillSignal, Timeout: m.view.KillTimeout}
	if !noDelay {
		effect.Delay = m.view.ShutdownDelay
	}
	m.to(Stopping)
	m.do(effect)
}

// restart carries out a person's restart, which skips the policy and its delays. A warm runner is never restarted.
func (m *machine) restart(ev Restart) {
	if m.Killed || m.view.Pool {
		return
	}
	switch m.Phase {
	case Running:
		reason := ev.Reason
		if reason == "" {
			reason = "User requested task to restart"
		}
		e := newEvent(drover.TaskRestartSignal, reason)
		e.RestartReason, e.Details["restart_reason"] = reason, reason
		m.note(e)
		m.again, m.failing = true, ev.Failure
		m.stop(true)
	case Backoff:
		m.prepare()
	case Pending, Preparing, Starting, Stopping, Dead: // it starts anyway, or will not any more
	}
}

// revive makes a dead task wait for its turn again, with a fresh restart policy. Its history stays; its times and its
// failure go.
func (m *machine) revive() {
	m.Killed, m.again, m.comesBack, m.Tracker = false, false, false, Tracker{}
	m.to(Pending)
	state := *m.State
	state.Failed, state.FinishedAt, state.StartedAt = false, time.Time{}, time.Time{}
	m.State = &state
	m.note(restartingEvent("", 0))
}

// restored takes up a task that outlived the agent. A kill that was under way is repeated, as the stop ended with the
// agent.
func (m *machine) restored() {
	if m.Phase != Pending {
		return
	}
	found := !m.handle // its start was interrupted, and never told
	m.handle, m.Ran = true, true
	m.to(Running)
	m.began = m.State.StartedAt
	if found {
		m.note(newEvent(drover.TaskStarted, "Task started by client"))
	}
	m.do(Await{})
	if m.Killed { // it was being stopped when the agent ended
		m.stop(true)
	}
}

// restoredExit applies an exit that was stored, as if the task had been running up to now.
func (m *machine) restoredExit(ev Exited) {
	m.handle, m.Ran = true, true
	m.to(Running)
	if m.Killed {
		m.to(Stopping)
	}
	m.exited(ev)
}

// restoreFailed takes a task that is gone as one that ended with a failure: the restart policy decides.
func (m *machine) restoreFailed(ev RestoreFailed) {
	if m.Phase != Pending {
		return
	}
	m.handle = false
	m.note(NewEvent(drover.TaskRestoreFailed, "failed to restore task; will not run until server is contacted: "+ev.Reason))
	if m.Killed {
		m.note(killedEvent())
		m.finish()
		return
	}
	m.ended(false, false)
}

// stopFailed only writes the history: whoever carries out the Stop goes on trying.
func (m *machine) stopFailed(ev StopFailed) {
	if m.Phase != Stopping {
		return
	}
	e := newEvent(drover.TaskKilling, fmt.Sprintf("Stopping failed, trying again: %s", ev.Reason))
	e.KillError, e.Details["kill_error"] = ev.Reason, ev.Reason
	m.note(e)
}
