package docker

import (
	"context"
	"os"
	"path/filepath"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/cgroup"
	"drover/internal/node/supervisor"
)

// lateGroups makes the control groups of a container's executions: below the container's own, so that its limits and its
// device rules hold for them too.
type lateGroups struct {
	d *Driver
	b *box // its group is known once drover-init runs
}

// mainGroup is the main task's.
const mainGroup = "main"

// Execution makes the group of one execution; nil if the container's is not ours to divide.
func (g lateGroups) Execution(id string, limits drover.Limits) (supervisor.Group, error) {
	return g.make("x."+id, cgroup.Limits{
		MemoryMax: int64(limits.MemoryMB) << 20, Pids: int64(limits.Pids), CPUShares: int64(limits.CPUMHz),
	})
}

func (g lateGroups) make(name string, limits cgroup.Limits) (supervisor.Group, error) {
	if g.b.group == nil {
		return nil, nil //nolint:nilnil // as supervisor.Groups has it
	}
	child, err := g.b.group.Child(name, limits, 0)
	if err != nil {
		return nil, err
	}
	return g.open(child)
}

// Find returns the group of an execution that an earlier agent started; nil if there is none.
func (g lateGroups) Find(id string) supervisor.Group {
	if g.b.group == nil {
		return nil
	}
	child, err := g.b.group.FindChild("x." + id)
	if err != nil {
		return nil
	}
	group, err := g.open(child)
	if err != nil {
		return nil
	}
	return group
}

func (g lateGroups) open(child *cgroup.Group) (supervisor.Group, error) {
	e := &execGroup{group: child, clock: g.d.cfg.Clock}
	for _, dir := range child.SupervisedDirs() {
		f, err := os.OpenFile(filepath.Join(dir, child.JoinFile()), os.O_RDWR, 0)
		if err != nil {
			e.Close()
			return nil, err
		}
		e.files.Procs = append(e.files.Procs, f)
	}
	return e, nil
}

// execGroup is the group of one execution, with the files that the supervisor gets.
type execGroup struct {
	group *cgroup.Group
	clock clock.Clock
	files supervisor.GroupFiles
}

// Close closes the files: the supervisor has its own once it was given them.
func (e *execGroup) Close() {
	for _, f := range e.files.Procs {
		_ = f.Close()
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
	return supervisor.GroupStats{UserCPU: u.CPUUser, SystemCPU: u.CPUSystem, PeakMemory: u.MemoryPeak, OOMKills: oom}, nil
}

// Kill kills all processes in it.
func (e *execGroup) Kill() error { return e.group.Kill() }

// Remove kills what is left and removes the group.
func (e *execGroup) Remove(ctx context.Context) error {
	e.Close()
	return e.group.Remove(ctx, e.clock)
}
