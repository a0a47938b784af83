package runner

import (
	"errors"

	"github.com/drover-project/drover"
)

// The reasons why a runner is gone that callers tell apart; the errors that carry them have the code drover.Gone.
var (
	// ErrOOM: the runner's memory was not enough, and the kernel killed it.
	ErrOOM = errors.New("the allocation was OOM Killed")
	// ErrStopped: it was stopped by request.
	ErrStopped = errors.New("the allocation stopped as expected")
	// ErrIdle: nobody used it for its idle timeout.
	ErrIdle = errors.New("runner inactivity timeout exceeded")
)

// endReason says why an allocation that has ended is gone. Its code is Gone.
func endReason(alloc *drover.Allocation) error {
	switch {
	case oomKilled(alloc):
		return drover.Errorf(drover.Gone, "%w", ErrOOM)
	case alloc.ClientStatus == drover.AllocClientLost: // which is then also stopped, to be replaced
		return drover.Errorf(drover.Gone, "the node of the runner was lost")
	case alloc.ServerTerminal():
		return drover.Errorf(drover.Gone, "%w", ErrStopped)
	case alloc.ClientStatus == drover.AllocClientFailed:
		return drover.Errorf(drover.Gone, "the allocation ended: %s: %s", alloc.ClientStatus, failure(alloc))
	}
	return drover.Errorf(drover.Gone, "the allocation ended: %s", alloc.ClientStatus)
}

// oomKilled reports whether any task was ever killed for its memory, as the driver notes in the details of its
// event.
func oomKilled(alloc *drover.Allocation) bool {
	for _, state := range alloc.TaskStates {
		for _, e := range state.Events {
			if e.Details["oom_killed"] == "true" {
				return true
			}
		}
	}
	return false
}
