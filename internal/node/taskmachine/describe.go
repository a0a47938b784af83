package taskmachine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/drover-project/drover"
)

// The texts are those of Nomad's API, which people and programs know.

// newEvent makes an event that has only the text for people. TaskEventLegacy is set because callers fill its fields.
func newEvent(kind, message string) *drover.TaskEvent {
	return &drover.TaskEvent{
		Type: kind, DisplayMessage: message, Details: map[string]string{}, TaskEventLegacy: &drover.TaskEventLegacy{},
	}
}

// NewEvent makes a task event with a message; details are key, value pairs.
func NewEvent(kind, message string, details ...string) *drover.TaskEvent {
	e := newEvent(kind, message)
	e.Message = message
	for i := 0; i+1 < len(details); i += 2 {
		e.Details[details[i]] = details[i+1]
	}
	return e
}

// terminatedEvent describes an exit. Its details repeat each figure as text: the typed fields are the older form of
// Nomad's API.
func terminatedEvent(x Exited) *drover.TaskEvent {
	e := newEvent(drover.TaskTerminated, "Exit Code: "+strconv.Itoa(x.Code))
	if x.Signal != 0 {
		e.DisplayMessage += ", Signal: " + strconv.Itoa(x.Signal)
	}
	message := x.Err
	if x.OOMKilled && message == "" {
		message = "OOM Killed"
	}
	if message != "" {
		e.DisplayMessage += fmt.Sprintf(", Exit Message: %q", message)
		e.Details["exit_message"] = message
	}
	e.ExitCode, e.Signal, e.Message = x.Code, x.Signal, message
	e.Details["exit_code"] = strconv.Itoa(x.Code)
	e.Details["signal"] = strconv.Itoa(x.Signal)
	e.Details["oom_killed"] = strconv.FormatBool(x.OOMKilled)
	return e
}

// restartingEvent announces a restart after delay. The older field StartDelay is in nanoseconds, and so is its text.
func restartingEvent(reason string, delay time.Duration) *drover.TaskEvent {
	e := newEvent(drover.TaskRestarting, fmt.Sprintf("%s - Task restarting in %v", reason, delay.Round(time.Millisecond)))
	if reason == "" {
		e.DisplayMessage = fmt.Sprintf("Task restarting in %v", delay.Round(time.Millisecond))
	}
	e.RestartReason, e.StartDelay = reason, int64(delay)
	e.Details["restart_reason"] = reason
	e.Details["start_delay"] = strconv.FormatInt(int64(delay), 10)
	return e
}

// notRestartingEvent says that the policy gives the task up, which makes the task a failed one (see Status.record).
func notRestartingEvent(reason string) *drover.TaskEvent {
	e := newEvent(drover.TaskNotRestarting, reason)
	e.RestartReason, e.FailsTask = reason, true
	e.Details["restart_reason"], e.Details["fails_task"] = reason, "true"
	return e
}

// killingEvent says that the task was asked to end. timeout is how long it may take before it is killed.
func killingEvent(reason string, timeout time.Duration) *drover.TaskEvent {
	message := fmt.Sprintf("Sent interrupt. Waiting %v before force killing", timeout)
	e := newEvent(drover.TaskKilling, message)
	if reason != "" {
		e.DisplayMessage = "Killing task: " + reason
		e.Details["kill_reason"] = reason
	}
	e.KillReason, e.KillTimeout = reason, timeout
	e.Details["kill_timeout"] = timeout.String()
	return e
}

func killedEvent() *drover.TaskEvent { return newEvent(drover.TaskKilled, "Task successfully killed") }

// causeEvent says why a task is killed.
func causeEvent(k Kill) *drover.TaskEvent {
	var e *drover.TaskEvent
	switch k.Type {
	case drover.TaskSiblingFailed:
		e = newEvent(k.Type, "Task's sibling failed")
		if k.Sibling != "" {
			e.DisplayMessage = fmt.Sprintf("Task's sibling %q failed", k.Sibling)
			e.FailedSibling, e.Details["failed_sibling"] = k.Sibling, k.Sibling
		}
	case drover.TaskLeaderDead:
		e = newEvent(k.Type, "Leader Task in Group dead")
	case drover.TaskMainDead:
		e = newEvent(k.Type, "Main tasks in the group died")
	case drover.TaskSetupFailure:
		e = newEvent(k.Type, k.Reason)
		e.SetupError, e.Details["setup_error"] = k.Reason, k.Reason
	default:
		e = newEvent(k.Type, k.Reason)
	}
	if k.Fails {
		e.FailsTask, e.Details["fails_task"] = true, "true"
	}
	return e
}

// setupFailureEvent describes a prestart hook that failed. Each type has its own field and detail for the reason in
// Nomad's API.
func setupFailureEvent(x PrepareFailed) *drover.TaskEvent {
	kind := x.Type
	if kind == "" {
		kind = drover.TaskSetupFailure
	}
	e := newEvent(kind, x.Reason)
	switch kind {
	case drover.TaskFailedValidation:
		e.ValidationError, e.Details["validation_error"] = x.Reason, x.Reason
	case drover.TaskDownloadFailed:
		e.DownloadError, e.Details["download_error"] = x.Reason, x.Reason
	case drover.TaskSetupFailure:
		e.SetupError, e.Details["setup_error"] = x.Reason, x.Reason
	}
	return e
}

// final marks the event of a failure that another try on this node would only repeat.
func final(e *drover.TaskEvent, is bool) *drover.TaskEvent {
	if is {
		e.Details[drover.DetailFinal] = "true"
	}
	return e
}

// driverFailureEvent describes a start that the driver could not carry out.
func driverFailureEvent(reason string) *drover.TaskEvent {
	e := newEvent(drover.TaskDriverFailure, reason)
	e.DriverError, e.Details["driver_error"] = reason, reason
	return e
}
