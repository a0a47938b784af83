package pool

import (
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
)

// Lease is a claimed runner in use. While a lease is held the runner's idle timer stands still.
type Lease interface {
	// Runner is the runner as it was when the lease was taken.
	Runner() execution.Runner
	// Environment is the runner's, as it is now.
	Environment() execution.Environment
	// Workloads is the node that the runner is on.
	Workloads() exchange.Workloads
	// Gone is closed when the runner ended or was released.
	Gone() <-chan struct{}
	// WhenGone calls f then, in a goroutine of its own, unless it was stopped before.
	WhenGone(f func()) (stop func() bool)
	// GoneReason says why; nil while it lives. Its code is drover.Gone.
	GoneReason() error
	// Done gives the lease back; calling it again does nothing.
	Done()
}
