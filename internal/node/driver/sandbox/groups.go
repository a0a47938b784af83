package sandbox

import (
	"context"
	"os"
	"path/filepath"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/cgroup"
	"drover/internal/node/supervisor"
)

// groups makes the control groups of a sandbox's executions.
type groups struct {
	task  *cgroup.Group
	clock clock.Clock
	owner int // who clones into them on v2; 0 = nobody
}

// mainGroup is the main task's: a group cannot have processes and, on v2, children with controllers.
const mainGroup = "main"

// Execution makes the group of one execution.
func (g *groups) Execution(id string, limits drover.Limits) (supervisor.Group, error) {
	return g.make("x."+id, cgroup.Limits{
		MemoryMax: int64(limits.MemoryMB) << 20, Pids: int64(limits.Pids), CPUShares: int64(limits.CPUMHz),
	})
}

func (g *groups) make(name string, limits cgroup.Limits) (supervisor.Group, error) {
	child, err := g.task.Child(name, limits, g.owner)
	if err != nil {
		return nil, err
	}
	group, err := g.open(child)
	if err != nil {
		return nil, err
	}
	return group, nil
}

// Find returns the group of an execution that an earlier agent started; nil if there is none.
func (g *groups) Find(id string) supervisor.Group {
	child, err := g.task.FindChild("x." + id)
	if err != nil {
		return nil
	}
	group, err := g.open(child)
	if err != nil {
		return nil
	}
	return group
}

func (g *groups) open(child *cgroup.Group) (*execGroup, error) {
	e := &execGroup{group: child, clock: g.clock}
	for _, dir := range child.SupervisedDirs() {
		f, err := os.OpenFile(filepath.Join(dir, child.JoinFile()), os.O_RDWR, 0)
		if err != nil {
			e.close()
			return nil, err
		}
		e.files.Procs = append(e.files.Procs, f)
	}
	if child.Version() == cgroup.V2 && g.owner > 0 {
		f, err := os.Open(child.Dirs()[0])
		if err != nil {
			e.close()
			return nil, err
		}
		e.files.Dir = f
	}
	return e, nil
}

// execGroup is the group of one execution, with the files that the supervisor gets.
type execGroup struct {
	group *cgroup.Group
	clock clock.Clock
	files supervisor.GroupFiles
}

func (e *execGroup) close() {
	for _, f := range e.files.Procs {
		_ = f.Close()
	}
	if e.files.Dir != nil {
		_ = e.files.Dir.Close()
	}
}

// Files are what the supervisor gets.
func (e *execGroup) Files() supervisor.GroupFiles { return e.files }

// Stats reads what the group used. What this kernel's trees do not tell stays zero, and wait4 tells it.
func (e *execGroup) Stats() (supervisor.GroupStats, error) {
	oom := int(e.group.OOMKills()) //nolint:gosec // a count of processes
	u, err := e.group.Usage()
	if err != nil {
		return supervisor.GroupStats{OOMKills: oom}, err
	}
	return supervisor.GroupStats{
		UserCPU: u.CPUUser, SystemCPU: u.CPUSystem, PeakMemory: u.MemoryPeak, OOMKills: oom,
	}, nil
}

// Kill kills all processes in it.
func (e *execGroup) Kill() error { return e.group.Kill() }

// Remove kills what is left and removes the group.
func (e *execGroup) Remove(ctx context.Context) error {
	e.close()
	return e.group.Remove(ctx, e.clock)
}
