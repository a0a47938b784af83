package taskmachine

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
)

// Status is what is known of a task. It is a value: a step returns a changed copy, and State is never changed once it
// was returned, so that readers may keep it.
type Status struct {
	Phase   Phase
	State   *drover.TaskState
	Tracker Tracker
	Killed  bool // it has to end: no restart
	Ran     bool // it ran at least once
	// began is when the start under way began, or when the task last started; zero if that is not known.
	began time.Time
	// again says that the task starts again after the stop under way, because somebody asked for a restart.
	again bool
	// failing says that the restart counts as a failure.
	failing bool
	// comesBack says that the task was told to end for a restart of the whole allocation.
	comesBack bool
	// handle says that the driver still holds resources of the last start.
	handle bool
}

// New returns the status of a task that was just received.
func New(now time.Time) Status {
	s := Status{Phase: Pending, State: &drover.TaskState{State: drover.TaskStatePending}}
	s.record(newEvent(drover.TaskReceived, "Task received by client"), now)
	return s
}

// Restore returns the status of a task as it was stored; Restored or RestoreFailed must be its next event if it had a
// handle. A dead one stays dead.
func Restore(state *drover.TaskState, killed, hadHandle bool) Status {
	kept := *state
	s := Status{Phase: Pending, State: &kept, Killed: killed && hadHandle, Ran: hadHandle || !state.StartedAt.IsZero(), handle: hadHandle}
	if state.State == drover.TaskStateDead {
		s.Phase = Dead
	}
	return s
}

// move goes to the phase and keeps State in step.
func (s *Status) move(next Phase, now time.Time) {
	s.Phase = next
	state := *s.State
	if next != Stopping { // what is stopped before it ran was never running
		state.State = next.state()
	}
	switch next {
	case Running:
		if s.State.State != drover.TaskStateRunning || state.StartedAt.IsZero() {
			state.StartedAt = now
		}
	case Dead:
		state.FinishedAt = now
	case Pending, Preparing, Starting, Stopping, Backoff:
	}
	s.State = &state
}

// fail sets the failed flag.
func (s *Status) fail() {
	state := *s.State
	state.Failed = true
	s.State = &state
}

// record appends an event, dropping the oldest beyond the ring's length.
func (s *Status) record(e *drover.TaskEvent, now time.Time) {
	e.Time = now.UnixNano()
	state := *s.State
	events := state.Events
	if over := len(events) + 1 - drover.MaxTaskEvents; over > 0 {
		events = events[over:]
	}
	state.Events = append(slices.Clip(events), e)
	if l := e.TaskEventLegacy; l != nil && l.FailsTask {
		state.Failed = true
	}
	if e.Type == drover.TaskRestarting {
		state.Restarts++
		state.LastRestart = now
	}
	s.State = &state
}
