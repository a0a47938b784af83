package taskmachine

import (
	"time"

	"github.com/drover-project/drover"
)

// Event is something that happened to a task. Exactly the types of this file are events.
type Event interface{ event() }

// Go: its turn in the lifecycle has come.
type Go struct{}

// Prepared: the prestart hooks are done.
type Prepared struct{}

// PrepareFailed: a prestart hook failed. Type is the task event to record ("" = Setup Failure).
type PrepareFailed struct {
	Type        string
	Reason      string
	Recoverable bool
}

// Started: the driver started it, and how to find it again is stored.
type Started struct{}

// StartFailed: the driver could not.
type StartFailed struct {
	Reason      string
	Recoverable bool
}

// Exited: the process ended.
type Exited struct {
	Code      int
	Signal    int
	OOMKilled bool
	Err       string // the exit could not be learned
}

// Failed reports whether the exit counts as a failure.
func (e Exited) Failed() bool { return e.Code != 0 || e.Signal != 0 || e.OOMKilled || e.Err != "" }

// Kill: the task has to end. Type is the task event that says why ("" = only Killing).
type Kill struct {
	Type   string
	Reason string
	// Sibling is the name of the failed task.
	Sibling string // for Sibling Task Failed
	Fails   bool   // the task counts as failed
	NoDelay bool   // skip the task's shutdown_delay
}

// Restart: somebody asked for a restart; it does not count against the policy.
type Restart struct{ Reason string }

// Revive: the whole allocation is restarted, and a dead task with it.
type Revive struct{}

// Due: the backoff is over.
type Due struct{}

// Restored: the agent restarted and found the task running.
type Restored struct{}

// RestoredExit: the agent restarted, and had stored how the task ended, but not what followed.
type RestoredExit Exited

// RestoreFailed: the agent restarted and did not find the task.
type RestoreFailed struct{ Reason string }

// StopFailed: the driver could not stop it.
type StopFailed struct{ Reason string }

// Noted: something worth a line in the task's history happened beside the machine.
type Noted struct{ Event *drover.TaskEvent }

func (Noted) event()         {}
func (Go) event()            {}
func (Prepared) event()      {}
func (PrepareFailed) event() {}
func (Started) event()       {}
func (StartFailed) event()   {}
func (Exited) event()        {}
func (Kill) event()          {}
func (Restart) event()       {}
func (Revive) event()        {}
func (Due) event()           {}
func (Restored) event()      {}
func (RestoreFailed) event() {}
func (RestoredExit) event()  {}
func (StopFailed) event()    {}

// Effect is something that has to be done now. Exactly the types below are effects.
type Effect interface{ effect() }

// Prepare runs the prestart hooks; it answers with Prepared or PrepareFailed.
type Prepare struct{}

// Launch asks the driver to start the task; it answers with Started or StartFailed.
type Launch struct{}

// Await waits for the end of the task; it answers with Exited.
type Await struct{}

// Cancel ends a Prepare or Launch under way; that still answers.
type Cancel struct{}

// Stop ends the running task, after Delay; it answers with StopFailed or, through Await, Exited.
type Stop struct {
	Delay   time.Duration
	Signal  string
	Timeout time.Duration
}

// Wake answers with Due after Delay.
type Wake struct{ Delay time.Duration }

// Destroy frees what the driver holds of the last start.
type Destroy struct{}

// Finish: the task is dead; nothing of it will happen unless it is revived.
type Finish struct{}

func (Prepare) effect() {}
func (Launch) effect()  {}
func (Await) effect()   {}
func (Cancel) effect()  {}
func (Stop) effect()    {}
func (Wake) effect()    {}
func (Destroy) effect() {}
func (Finish) effect()  {}
