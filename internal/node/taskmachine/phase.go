package taskmachine

import "github.com/drover-project/drover"

// Phase is where a task stands. Values are spaced so that one can be put between.
type Phase uint16

// The phases.
const (
	Pending   Phase = 64 * (iota + 1) // waits for its turn in the allocation's lifecycle
	Preparing                         // the prestart hooks run
	Starting                          // the driver was asked to start it
	Running                           // it runs
	Stopping                          // it was told to stop
	Backoff                           // it waits for its restart
	Dead                              // it ended for good
)

var phaseNames = map[Phase]string{
	Pending: "pending", Preparing: "preparing", Starting: "starting", Running: "running", Stopping: "stopping",
	Backoff: "backoff", Dead: "dead",
}

// String returns the phase's name.
func (p Phase) String() string { return phaseNames[p] }

// Terminal reports whether nothing more happens by itself.
func (p Phase) Terminal() bool { return p == Dead }

// state is the phase as Nomad's API names it.
func (p Phase) state() string {
	switch p {
	case Running, Stopping:
		return drover.TaskStateRunning
	case Dead:
		return drover.TaskStateDead
	case Pending, Preparing, Starting, Backoff:
	}
	return drover.TaskStatePending
}

// CanBecome reports whether a step may lead from p to next.
func (p Phase) CanBecome(next Phase) bool {
	if p == next {
		return true
	}
	switch p {
	case Pending:
		return next == Preparing || next == Dead || next == Running || next == Backoff || next == Stopping // the last three: restored
	case Preparing:
		return next == Starting || next == Backoff || next == Dead || next == Stopping
	case Starting:
		return next == Running || next == Backoff || next == Dead || next == Stopping
	case Running:
		return next == Stopping || next == Backoff || next == Dead || next == Preparing
	case Stopping:
		return next == Dead || next == Backoff || next == Preparing
	case Backoff:
		return next == Preparing || next == Dead
	case Dead:
		return next == Pending
	}
	return false
}
