package supervisor

import (
	"context"
	"os"
	"time"

	"github.com/drover-project/drover"
)

// Groups makes the control groups of executions, outside the guest, where the agent has the rights for it.
type Groups interface {
	// Execution makes the group of one execution with its limits; a nil Group means: this machine has none.
	Execution(id string, limits drover.Limits) (Group, error)
	// Find returns the group of an execution that was started before an agent restart; nil if there is none.
	Find(id string) Group
}

// Group is one control group.
type Group interface {
	// Files are what the supervisor gets: it lets each child join before its program starts.
	Files() GroupFiles
	// Stats reads what the group used up to now.
	Stats() (GroupStats, error)
	// OOMKills counts the processes of it that the kernel killed for memory.
	OOMKills() int
	// Kill kills all processes in it.
	Kill() error
	// Remove kills what is left and removes the group; idempotent.
	Remove(ctx context.Context) error
}

// GroupFiles are open files of a group. The supervisor gets duplicates; the owner closes them.
type GroupFiles struct {
	// Procs are cgroup.procs files opened read-write by the agent, one for each hierarchy. The child writes "0" into each of them between
	// fork and exec, and the supervisor reads the members from the first. The kernel checks the rights of the opener (the agent), so that
	// it works from inside a user namespace.
	Procs []*os.File
	// Dir, if set, is a v2 group's folder to clone into directly; Procs[0] is then only read.
	Dir *os.File
}

// GroupStats is what a group used.
type GroupStats struct {
	UserCPU    time.Duration
	SystemCPU  time.Duration
	PeakMemory int64 // bytes
}
