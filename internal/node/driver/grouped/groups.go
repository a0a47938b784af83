package grouped

import (
	"context"
	"os"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Main is the name of the main task's group: on v2 a group cannot have both processes and children with controllers.
const Main = "main"

// Groups makes the control groups below a task's: one for its program, one an execution.
type Groups struct {
	Task  *cgroup.Group // nil: there is none, and so none below
	Clock clock.Clock
	// Clone: the supervisor may start programs right in their v2 group. Owner is the uid that it does that as; 0 = root.
	Clone bool
	Owner int
	// Apart: the supervisor is in none of the task's groups, so that what it starts has to join them all.
	Apart bool

	spares spares
}

var _ supervisor.Groups = (*Groups)(nil)

// Execution makes the group of one execution.
func (g *Groups) Execution(id string, l drover.Limits) (supervisor.Group, error) {
	if g.Task == nil || l.MemoryMB > 0 && g.Task.Dir("memory") == "" || l.Pids > 0 && g.Task.Dir("pids") == "" {
		return nil, nil // as supervisor.Groups has it: the supervisor keeps the limits itself then
	}
	name, plain := "x."+id, unlimited(l)
	if plain {
		if e := g.spare(name); e != nil {
			return e, nil
		}
	}
	made, err := g.Make(name, cgroup.Limits{MemoryMax: int64(l.MemoryMB) << 20, Pids: int64(l.Pids), CPUShares: int64(l.CPUMHz)})
	if err != nil {
		return nil, err
	}
	if plain && reusable(made.group) {
		made.spares = &g.spares
	}
	return made, nil
}

// Make makes a group of that name; on v1 the main task of a supervisor that is apart has the task's own. Its taker closes
// it, and removes it or leaves that to the removal of the task's.
func (g *Groups) Make(name string, limits cgroup.Limits) (*Group, error) {
	if name == Main && g.Apart && g.Task.Version() == cgroup.V1 {
		return g.open(g.Task)
	}
	child, err := g.Task.Child(name, limits, g.Owner)
	if err != nil {
		return nil, err
	}
	return g.open(child)
}

// Find returns the group of an execution that an earlier agent started; nil if there is none.
func (g *Groups) Find(id string) supervisor.Group {
	if g.Task == nil {
		return nil
	}
	child, err := g.Task.FindChild("x." + id)
	if err != nil {
		return nil
	}
	found, err := g.open(child)
	if err != nil {
		return nil
	}
	return found
}

// OOMKills tells how many processes of the task the kernel killed for its memory.
func (g *Groups) OOMKills() uint64 {
	if g.Task == nil {
		return 0
	}
	return g.Task.OOMKills()
}

// open opens the files of a group that the supervisor gets. On an error nothing stays open, but the group stays.
func (g *Groups) open(child *cgroup.Group) (*Group, error) {
	e := &Group{group: child, clock: g.Clock}
	dirs := child.SupervisedDirs()
	if g.Apart {
		dirs = child.Dirs()
	}
	for _, dir := range dirs {
		f, err := child.OpenJoin(dir)
		if err != nil {
			e.Close()
			return nil, err
		}
		e.files.Procs = append(e.files.Procs, f)
	}
	if child.Version() == cgroup.V2 && g.Clone {
		f, err := os.Open(child.Dirs()[0])
		if err != nil {
			e.Close()
			return nil, err
		}
		e.files.Dir = f
	}
	return e, nil
}

// Group is one of them, with the files that the supervisor gets.
type Group struct {
	group *cgroup.Group
	clock clock.Clock
	files supervisor.GroupFiles

	spares *spares // that it is kept among once it is empty; nil: it is removed
}

// Close closes the files: the supervisor has its own once it was given them.
func (e *Group) Close() {
	for _, f := range e.files.Procs {
		_ = f.Close()
	}
	if e.files.Dir != nil {
		_ = e.files.Dir.Close()
	}
}

// NotAgain keeps the group from being another execution's after this one, of which something may still come.
func (e *Group) NotAgain() { e.spares = nil }

// Files are what the supervisor gets.
func (e *Group) Files() supervisor.GroupFiles { return e.files }

// Stats reads what the group used. What this kernel's trees do not tell stays zero, and wait4 tells it.
func (e *Group) Stats() (supervisor.GroupStats, error) {
	u, err := e.group.Usage()
	if err != nil {
		return supervisor.GroupStats{}, err
	}
	return supervisor.GroupStats{UserCPU: u.CPUUser, SystemCPU: u.CPUSystem, PeakMemory: u.MemoryPeak}, nil
}

// OOMKills counts the processes of it that the kernel killed for memory.
func (e *Group) OOMKills() int { return int(e.group.OOMKills()) } // a count of processes

// Kill kills all processes in it.
func (e *Group) Kill() error { return e.group.Kill() }

// Remove kills what is left and removes the group, or keeps it for the task's next execution.
func (e *Group) Remove(ctx context.Context) error {
	if e.spares != nil && e.spares.keep(e) {
		return nil
	}
	e.Close()
	return e.group.Remove(ctx, e.clock)
}
