package rawexec

import (
	"context"
	"os"
	"path/filepath"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/cgroup"
	"drover/internal/node/supervisor"
)

// groups makes the control groups inside of a task's: one for its program, one an execution.
type groups struct {
	task  *cgroup.Group // nil: none
	clock clock.Clock
}

func (h *handle) groups() *groups { return &groups{h.group, h.d.cfg.Clock} }

func (g *groups) main() (supervisor.Group, error) {
	if g.task == nil {
		return nil, nil //nolint:nilnil // a machine without control groups
	}
	return g.make("main", cgroup.Limits{})
}

// Execution makes the group of one execution.
func (g *groups) Execution(id string, l drover.Limits) (supervisor.Group, error) {
	return g.make("x."+id, cgroup.Limits{MemoryMax: int64(l.MemoryMB) << 20, Pids: int64(l.Pids), CPUShares: int64(l.CPUMHz)})
}

// Find returns the group of an execution that an earlier agent started; nil if there is none.
func (g *groups) Find(id string) supervisor.Group {
	child, err := g.task.FindChild("x." + id)
	if err != nil {
		return nil
	}
	made, err := g.open(child)
	if err != nil {
		return nil
	}
	return made
}

func (g *groups) make(name string, limits cgroup.Limits) (supervisor.Group, error) {
	child, err := g.task.Child(name, limits, 0)
	if err != nil {
		return nil, err
	}
	return g.open(child)
}

func (g *groups) open(child *cgroup.Group) (supervisor.Group, error) {
	e := &group{group: child, clock: g.clock}
	for _, dir := range child.Dirs() {
		f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_RDWR, 0)
		if err != nil {
			e.close()
			return nil, err
		}
		e.files.Procs = append(e.files.Procs, f)
	}
	if child.Version() == cgroup.V2 {
		f, err := os.Open(child.Dirs()[0])
		if err != nil {
			e.close()
			return nil, err
		}
		e.files.Dir = f
	}
	return e, nil
}

// group is one of them, with the files that the supervisor gets.
type group struct {
	group *cgroup.Group
	clock clock.Clock
	files supervisor.GroupFiles
}

func (e *group) close() {
	for _, f := range e.files.Procs {
		_ = f.Close()
	}
	if e.files.Dir != nil {
		_ = e.files.Dir.Close()
	}
}

// Files are what the supervisor gets.
func (e *group) Files() supervisor.GroupFiles { return e.files }

// Stats reads what the group used.
func (e *group) Stats() (supervisor.GroupStats, error) {
	u, err := e.group.Usage()
	return supervisor.GroupStats{UserCPU: u.CPUUser, SystemCPU: u.CPUSystem, PeakMemory: u.MemoryPeak, OOMKills: int(e.group.OOMKills())}, err
}

// Kill kills all processes in it.
func (e *group) Kill() error { return e.group.Kill() }

// Remove kills what is left and removes the group.
func (e *group) Remove(ctx context.Context) error {
	e.close()
	return e.group.Remove(ctx, e.clock)
}
