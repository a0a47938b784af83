package grouped

import (
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/cgroup"
)

// spares are groups of ended executions for the next ones: to rename one takes a tenth of making and removing it. Only v1
// can, and only what counts nothing and limits nothing is as good as new.
type spares struct {
	mu     sync.Mutex
	list   []*Group // guarded by mu
	closed bool     // guarded by mu: there is no next execution
}

// maxSpares is how many are kept of a task, with their open files.
const maxSpares = 8

// take returns the group that was kept last, nil if there is none.
func (s *spares) take() *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.list) - 1
	if last < 0 {
		return nil
	}
	e := s.list[last]
	s.list = s.list[:last]
	return e
}

// keep reports whether the group is a spare from now on.
func (s *spares) keep(e *Group) bool {
	if !e.group.Empty() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.list) >= maxSpares {
		return false
	}
	s.list = append(s.list, e)
	return true
}

// spare returns one under a new name; nil if there is none.
func (g *Groups) spare(name string) *Group {
	e := g.spares.take()
	if e == nil {
		return nil
	}
	renamed, err := e.group.Renamed(name)
	if err != nil { // it goes with the task's
		e.Close()
		return nil
	}
	return &Group{group: renamed, clock: e.clock, files: e.files, spares: e.spares}
}

// Close lets go of what is kept for the next executions.
func (g *Groups) Close() {
	g.spares.mu.Lock()
	g.spares.closed = true
	g.spares.mu.Unlock()
	for e := g.spares.take(); e != nil; e = g.spares.take() {
		e.Close()
	}
}

// unlimited reports whether nothing is asked for that a group would have to be made for.
func unlimited(l drover.Limits) bool { return l.MemoryMB == 0 && l.Pids == 0 && l.CPUMHz == 0 }

// reusable reports whether the group counts nothing that the next execution's would be added to.
func reusable(group *cgroup.Group) bool {
	return group.Version() == cgroup.V1 && group.Dir("pids") != "" && group.Dir("cpuacct") == "" && group.Dir("memory") == ""
}
