package program

import (
	"syscall"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
)

// DrainPatience is how long a pipe may be held open by others after the end of its program: what was written is in it by
// then.
const DrainPatience = 20 * time.Millisecond

// Ended says how a child ended whose orphans used orphans. cause is why it was killed by us, "" if it was not. A killed one
// is never an exit with 0.
func Ended(c *process.Child, orphans process.Used, cause execution.Cause, spec execution.Spec) execution.Receipt {
	orphans.Add(c.Usage)
	r := execution.Receipt{
		UserCPU: orphans.User, SystemCPU: orphans.System, PeakMemory: orphans.Peak, Cause: execution.CauseExited,
		ExitCode: c.Status.ExitStatus(),
	}
	if c.Status.Signaled() {
		r.Signal = int(c.Status.Signal())
		r.ExitCode, r.Cause = 128+r.Signal, execution.CauseSignalled
		if spec.Limits.CPU > 0 && c.Status.Signal() == syscall.SIGXCPU {
			r.Cause = execution.CauseCPULimit
		}
	}
	if cause != "" {
		r.Cause = cause
		if r.ExitCode == 0 {
			r.ExitCode = 128 + int(syscall.SIGKILL)
		}
	}
	return r
}
