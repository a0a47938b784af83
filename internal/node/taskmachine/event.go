package taskmachine

import (
	"time"

	"github.com/drover-project/drover"
)

// Event is something that happened to a task. Exactly the types of this file are events.
type Event interface{ event() }

// Go says that the task's turn in the allocation's lifecycle has come. It counts only in Pending.
type Go struct{}

// Prepared says that all prestart hooks have succeeded.
type Prepared struct{}

// PrepareFailed says that a prestart hook failed. Type is the task event to record; "" means Setup Failure. One that is
// not Recoverable is not tried again, whatever the restart policy says.
type PrepareFailed struct {
	Type        string
	Reason      string
	Recoverable bool
}

// Started says that the driver started the task, and that what is needed to find it again is on the disk.
type Started struct{}

// StartFailed says that the driver could not start the task. Recoverable means the same as in PrepareFailed.
type StartFailed struct {
	Reason      string
	Recoverable bool
}

// Exited says that the task's process ended, whoever ended it.
type Exited struct {
	Code      int
	Signal    int
	OOMKilled bool
	Err       string // the exit could not be learned
}

// Failed reports whether the exit counts as a failure.
func (e Exited) Failed() bool { return e.Code != 0 || e.Signal != 0 || e.OOMKilled || e.Err != "" }

// Kill says that the task has to end; the restart policy is not asked. Type is the task event that says why; "" records
// Killing alone.
type Kill struct {
	Type   string
	Reason string
	// Sibling is the name of the failed task.
	Sibling string // for Sibling Task Failed
	Fails   bool   // the task counts as failed
	NoDelay bool   // skip the task's shutdown_delay
}

// Restart says that somebody asked for a restart of this task. It does not count against the restart policy, unless the
// task is restarted because of a failure.
type Restart struct {
	Reason  string
	Failure bool
}

// Revive makes a dead task live again, because the whole allocation is restarted.
type Revive struct{}

// Due says that the pause before a restart is over.
type Due struct{}

// Restored says that the agent started again and that the task still runs.
type Restored struct{}

// RestoredExit carries the exit that an earlier agent had stored. What should have followed from it was not stored, and
// follows now.
type RestoredExit Exited

// RestoreFailed says that the agent started again and did not find the task. How it ended is not known.
type RestoreFailed struct{ Reason string }

// StopFailed says that the driver could not stop the task. The Stop is tried again meanwhile.
type StopFailed struct{ Reason string }

// Noted adds an event to the task's history and leaves its phase as it is.
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

// Finish says that the task is dead. Only Revive can follow.
type Finish struct{}

func (Prepare) effect() {}
func (Launch) effect()  {}
func (Await) effect()   {}
func (Cancel) effect()  {}
func (Stop) effect()    {}
func (Wake) effect()    {}
func (Destroy) effect() {}
func (Finish) effect()  {}
