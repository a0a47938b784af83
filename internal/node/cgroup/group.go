package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/drover-project/drover"
)

// Group is a task's group. Its methods may be called at once; all state is the kernel's.
type Group struct {
	name    string
	version Version
	byCtl   map[string]string // controller → payload directory; v2: "" → it
	dirs    []string          // the payload's directories, distinct
	initDir []string          // where the supervisor goes
	tops    []string          // what Remove removes

	made  atomic.Pointer[Limits] // as which it was made, and is still; nil: that is not known
	homes map[string]string      // v1: the agent's own groups by tree
	stats openStats

	// kept is the name of a child that an earlier task left for the first that has no limits; nil: none. See spares.
	kept atomic.Pointer[string]

	parent *Group // of a child: the kernel counts memory kills there when the child has no memory group
}

// group computes where a task's directories are; it makes none and does not look. On v2 a group that gives controllers
// to children cannot have processes of its own, so the supervisor and the payload each get a leaf. On v1 each controller
// has a tree, and cpuset is used only when cores are reserved.
func (m *Groups) group(name string, cpuset bool) *Group {
	g := &Group{name: name, version: m.info.Version, byCtl: map[string]string{}, homes: m.homes, stats: openStats{room: &m.room}}
	if m.info.Version == V2 {
		top := filepath.Join(m.info.mounts[""], m.parent, name)
		task := filepath.Join(top, "task")
		g.byCtl[""], g.dirs, g.tops = task, []string{task}, []string{top}
		for _, c := range m.info.Controllers {
			g.byCtl[c] = task
		}
		g.initDir = []string{filepath.Join(top, "init")}
		return g
	}
	controllers := m.payloadControllers()
	if cpuset && m.info.Has("cpuset") {
		controllers = append(controllers, "cpuset")
	}
	for _, c := range controllers {
		g.byCtl[c] = filepath.Join(m.info.mounts[c], m.parent, name)
	}
	for _, t := range m.trees(controllers...) {
		g.dirs = append(g.dirs, filepath.Join(t, m.parent, name))
		if !m.separate(t) {
			g.initDir = append(g.initDir, filepath.Join(t, m.parent, name))
		}
	}
	for _, t := range m.away {
		g.initDir = append(g.initDir, filepath.Join(t, m.parent, supervisors))
	}
	g.tops = g.dirs
	return g
}

// Supervisors is where drover-inits go that are in no task's group: on v1 only in the trees where the agent is in a group
// of its own, which must not count them. AddInit and JoinInit are for it, nothing else.
func (m *Groups) Supervisors() *Group {
	g := &Group{name: supervisors, version: m.info.Version, homes: m.homes}
	trees := m.away
	if m.info.Version == V2 {
		trees = []string{m.info.mounts[""]}
	}
	for _, t := range trees {
		g.initDir = append(g.initDir, filepath.Join(t, m.parent, supervisors))
	}
	return g
}

// Name returns the name given to Create.
func (g *Group) Name() string { return g.name }

// Version tells which kind of tree the directories are of.
func (g *Group) Version() Version { return g.version }

// Dir returns the directory in which a controller's files are, "" if the group has none.
func (g *Group) Dir(controller string) string { return g.byCtl[controller] }

// create makes the directories from the top down, sets the limits, and gives the owner its files last. What is there
// already is taken over.
func (g *Group) create(limits Limits, owner int) error {
	if g.version == V2 {
		top := g.tops[0]
		if err := mkdir(top); err != nil {
			return err
		}
		if err := handDown(top); err != nil {
			return err
		}
		if err := mkdir(g.initDir[0]); err != nil {
			return err
		}
	}
	for _, d := range g.dirs {
		if err := mkdir(d); err != nil {
			return err
		}
		if err := inheritCpuset(d); err != nil {
			return err
		}
	}
	if g.version == V2 { // for the limits of executions
		if err := handDown(g.dirs[0]); err != nil {
			return err
		}
	}
	if err := g.Update(limits); err != nil {
		return err
	}
	return g.chown(owner)
}

// chown lets the owner start or move its own processes in the group (v2), and gives it no other right. The kernel also
// asks for the right to write to the common ancestor's file. On v1 the rights of whoever opened the file count: the
// agent opens it.
func (g *Group) chown(owner int) error {
	if owner <= 0 || g.version == V1 {
		return nil
	}
	dirs := g.dirs
	if g.version == V2 {
		if g.parent == nil {
			dirs = append([]string{g.tops[0], g.initDir[0]}, dirs...)
		}
	}
	for _, d := range dirs {
		files := []string{"cgroup.procs", "cgroup.threads"}
		for _, f := range files {
			if err := os.Lchown(filepath.Join(d, f), owner, owner); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// AddInit moves a supervisor beside the payload. On v1 it goes into the payload's group in the trees where nothing can
// happen to it there (cpu), so that what it starts need not be moved.
func (g *Group) AddInit(pid int) error { return place(g.initDir, pid) }

// JoinInit moves the calling thread to where AddInit would move a process, so that what it forks is born there, and
// returns how to move it back. Only for v1, where a thread may be apart from its process; the goroutine must be locked
// to its thread until it is back. Moving a thread costs microseconds; moving a process waits for all processors, which
// can take 10 ms. Errors: the thread is where it was, unless back said otherwise too.
func (g *Group) JoinInit() (back func() error, err error) {
	var from []string
	back = func() error {
		var errs []error
		for _, dir := range from {
			errs = append(errs, write(dir, "tasks", "0"))
		}
		return errors.Join(errs...)
	}
	for _, d := range g.initDir {
		home := g.homes[treeOf(g.homes, d)]
		if home == "" {
			return back, errors.Join(drover.Errorf(drover.Unavailable, "no way back from %s", d), back())
		}
		if err := write(d, "tasks", "0"); err != nil {
			return back, errors.Join(fmt.Errorf("joining a cgroup: %w", err), back())
		}
		from = append(from, home)
	}
	return back, nil
}

// treeOf returns the tree in which a directory is, "" if it is in none.
func treeOf(homes map[string]string, dir string) string {
	for tree := range homes {
		if strings.HasPrefix(dir, tree+"/") {
			return tree
		}
	}
	return ""
}

// JoinFile names the file that a new process of one thread writes "0" into. On v1 it is not cgroup.procs: see JoinInit.
func (g *Group) JoinFile() string {
	if g.version == V1 {
		return "tasks"
	}
	return "cgroup.procs"
}

// place moves a process, with all its threads, into each of the directories.
func place(dirs []string, pid int) error {
	for _, d := range dirs {
		if err := write(d, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("placing process %d: %w", pid, err)
		}
	}
	return nil
}

// mkdir makes one directory, or finds it there. Its parent must exist.
func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// inheritCpuset fills a v1 cpuset group's empty masks from its parent: without them it takes no process.
func inheritCpuset(dir string) error {
	if !strings.Contains(dir, "cpuset") {
		return nil
	}
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		have, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil || strings.TrimSpace(string(have)) != "" {
			continue // not a v1 cpuset, or set
		}
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), f))
		if err != nil {
			return err
		}
		if err := write(dir, f, strings.TrimSpace(string(above))); err != nil {
			return err
		}
	}
	return nil
}

// InitDir is the supervisor's directory on v2.
func (g *Group) InitDir() string { return g.initDir[0] }
