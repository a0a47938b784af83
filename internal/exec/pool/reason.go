package pool

import "errors"

// The reasons why a runner is gone that callers tell apart; the errors that carry them have the code drover.Gone.
var (
	// ErrOOM: the runner's memory was not enough, and the kernel killed it.
	ErrOOM = errors.New("the allocation was OOM Killed")
	// ErrStopped: it was stopped by request.
	ErrStopped = errors.New("the allocation stopped as expected")
	// ErrIdle: nobody used it for its idle timeout.
	ErrIdle = errors.New("runner inactivity timeout exceeded")
)
