package executor

import (
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/invariant"
)

// outlives is how long an execution may take to end after its runner: it waits a second for the reason, and for the disk.
const outlives = 5 * time.Minute

// mustEnd is told that the runner is gone: the execution has to end too.
func (x *Execution) mustEnd() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.receipt != nil || x.overdue != nil {
		return
	}
	x.overdue = x.clock.AfterFunc(outlives, func() {
		invariant.Breach(invariant.NothingOutlives, x.id, "its runner %s is gone for %s, and it has not ended", x.runner.ID, outlives)
	})
}

// checkReceipt compares what a node says of an execution's end with what arrived from it, and with itself.
func (x *Execution) checkReceipt(r *execution.Receipt) {
	if r.ExitCode == 0 && r.Cause != execution.CauseExited {
		invariant.Breach(invariant.FailureIsNoSuccess, x.id, "its exit code is 0, and it ended as %q", r.Cause)
	}
	if r.Truncated {
		return
	}
	x.mu.Lock()
	stdout, stderr := x.journal.Of(execution.Stdout).End(), x.journal.Of(execution.Stderr).End()
	x.mu.Unlock()
	if stdout < r.StdoutBytes || stderr < r.StderrBytes {
		invariant.Breach(invariant.OutputBeforeExit, x.id,
			"%d and %d bytes of output arrived before its exit, it wrote %d and %d, and nothing says truncated",
			stdout, stderr, r.StdoutBytes, r.StderrBytes)
	}
}
