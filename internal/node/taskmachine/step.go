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

func (m *machine) do(e ...Effect)           { m.effects = append(m.effects, e...) }
func (m *machine) to(p Phase)               { m.move(p, m.now) }
func (m *machine) note(e *drover.TaskEvent) { m.record(e, m.now) }
func (m *machine) in(phases ...Phase) (yes bool) {
	for _, p := range phases {
		yes = yes || m.Phase == p
	}
	return yes
}

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

func (m *machine) prepare() {
	m.to(Preparing)
	m.began = m.now
	m.do(Prepare{})
}

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

func (m *machine) prepareFailed(ev PrepareFailed) {
	switch m.Phase {
	case Preparing:
		m.note(setupFailureEvent(ev))
		m.ended(false, !ev.Recoverable)
	case Stopping:
		m.finishStop()
	case Pending, Starting, Running, Backoff, Dead: // late
	}
}

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

func (m *machine) startFailed(ev StartFailed) {
	switch m.Phase {
	case Starting:
		m.note(driverFailureEvent(ev.Reason))
		m.ended(false, !ev.Recoverable)
	case Stopping:
		m.finishStop()
	case Pending, Preparing, Running, Backoff, Dead: // late
	}
}

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
		m.note(restartingEvent("", 0))
		m.prepare()
		return
	}
	m.again = false
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

func (m *machine) stop(noDelay bool) {
	effect := Stop{Signal: m.view.KillSignal, Timeout: m.view.KillTimeout}
	if !noDelay {
		effect.Delay = m.view.ShutdownDelay
	}
	m.to(Stopping)
	m.do(effect)
}

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
		m.again = true
		m.stop(true)
	case Backoff:
		m.prepare()
	case Pending, Preparing, Starting, Stopping, Dead: // it starts anyway, or will not any more
	}
}

func (m *machine) revive() {
	m.Killed, m.again, m.comesBack, m.Tracker = false, false, false, Tracker{}
	m.to(Pending)
	state := *m.State
	state.Failed, state.FinishedAt, state.StartedAt = false, time.Time{}, time.Time{}
	m.State = &state
	m.note(restartingEvent("", 0))
}

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

func (m *machine) restoredExit(ev Exited) {
	m.handle, m.Ran = true, true
	m.to(Running)
	if m.Killed {
		m.to(Stopping)
	}
	m.exited(ev)
}

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

func (m *machine) stopFailed(ev StopFailed) {
	if m.Phase != Stopping {
		return
	}
	e := newEvent(drover.TaskKilling, fmt.Sprintf("Stopping failed, trying again: %s", ev.Reason))
	e.KillError, e.Details["kill_error"] = ev.Reason, ev.Reason
	m.note(e)
}
