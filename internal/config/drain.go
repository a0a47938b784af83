package config

import (
	"cmp"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
)

// DrainOnEnd has the node drained before its agent ends, by a signal that leave_on_interrupt or leave_on_terminate names. It takes work
// again when it is back. A second signal ends the agent at once.
type DrainOnEnd struct {
	Deadline         string `hcl:"deadline,optional"`           // what still runs then is stopped; 0s is no end; duration; default 1h
	Force            *bool  `hcl:"force,optional"`              // stop all at once; default false
	IgnoreSystemJobs *bool  `hcl:"ignore_system_jobs,optional"` // leave allocations of system jobs alone; default false
}

const drainDeadline = time.Hour

// Leaves is the drain with which the node leaves; nil for none.
func (c *Client) Leaves() *drover.DrainSpec {
	if c.Drain == nil {
		return nil
	}
	out := &drover.DrainSpec{
		Deadline: Duration(c.Drain.Deadline, drainDeadline), IgnoreSystemJobs: optional.Value(c.Drain.IgnoreSystemJobs),
	}
	if optional.Value(c.Drain.Force) {
		out.Deadline = -1
	}
	return out
}

// drainProblems are those of a node that leaves.
func (a *Agent) drainProblems(p *problems) {
	p.check(a.Client.Drain == nil || optional.Value(a.LeaveOnInterrupt) || optional.Value(a.LeaveOnTerminate), "client.drain_on_shutdown",
		"no signal has the node leave: set leave_on_interrupt = true (SIGINT, which contrib/systemd sends), "+
			"leave_on_terminate = true (SIGTERM), or both")
}

func (a *Agent) drainDeadline() string { return cmp.Or(a.Client.Drain, &DrainOnEnd{}).Deadline }
