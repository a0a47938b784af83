package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// Child makes a group inside the payload's, for one execution. On v1 it uses only the trees that its limits need and one
// more to know its members by, because each tree costs a join at every start. Once the kernel has killed something in
// the payload for memory, the child gets a memory group too. Its own kills can then be told from the earlier ones, also
// by an agent that finds the child again.
func (g *Group) Child(name string, limits Limits, owner int) (*Group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	c := g.child(name)
	if g.version == V1 {
		c.keep(g.needed(limits))
	}
	c.parent = g
	if limits.same(Limits{}) && g.handOver(c) {
		return c, nil
	}
	for _, d := range c.dirs {
		if err := mkdir(d); err != nil {
			_ = c.removeDirs()
			return nil, fmt.Errorf("creating cgroup %s/%s: %w", g.name, name, err)
		}
	}
	err := errors.Join(c.Update(limits), c.chown(owner))
	if err != nil {
		_ = c.removeDirs()
		return nil, fmt.Errorf("creating cgroup %s/%s: %w", g.name, name, err)
	}
	return c, nil
}

// handOver makes the kept child the given one, which only is in the tree of pids; false if there is none.
func (g *Group) handOver(c *Group) bool {
	if len(c.dirs) != 1 || c.dirs[0] != c.byCtl["pids"] {
		return false
	}
	old := g.kept.Swap(nil)
	return old != nil && unix.Rename(filepath.Join(g.byCtl["pids"], *old), c.dirs[0]) == nil
}

// Dirs are the directories that a member writes itself into, the group's own first: in the v1 trees where it has none
// it belongs to the parent's.
func (g *Group) Dirs() []string {
	if g.parent == nil || g.version == V2 {
		return g.dirs
	}
	join := slices.Clone(g.dirs)
	for _, dir := range g.parent.dirs {
		if !slices.ContainsFunc(g.dirs, func(own string) bool { return filepath.Dir(own) == dir }) {
			join = append(join, dir)
		}
	}
	return join
}

// SupervisedDirs are those of Dirs which a child of a supervisor that was placed by AddInit is not in by birth.
func (g *Group) SupervisedDirs() []string {
	if g.parent == nil {
		return g.dirs
	}
	return slices.DeleteFunc(g.Dirs(), func(dir string) bool { return slices.Contains(g.parent.initDir, dir) })
}

// FindChild finds a group of an execution again. Errors: NotFound.
func (g *Group) FindChild(name string) (*Group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	c := g.child(name)
	there := c.existing()
	if len(there) == 0 {
		return nil, drover.Errorf(drover.NotFound, "no cgroup %s/%s", g.name, name)
	}
	c.keep(there)
	c.parent = g
	return c, nil
}

// child is a group below the payload's, by its paths alone: nothing is made or looked for.
func (g *Group) child(name string) *Group {
	c := &Group{name: g.name + "/" + name, version: g.version, byCtl: map[string]string{}}
	for controller, dir := range g.byCtl {
		c.byCtl[controller] = filepath.Join(dir, name)
	}
	for _, d := range g.dirs {
		c.dirs = append(c.dirs, filepath.Join(d, name))
	}
	c.tops = c.dirs
	return c
}

// Renamed gives a child of its own, in which there is nothing any more, to another execution. On v1 only. Errors: Conflict
// if a new child would have more, those of the kernel.
func (g *Group) Renamed(name string) (*Group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if g.byCtl["memory"] == "" && g.parent.ownOOMKills() > 0 {
		return nil, drover.Errorf(drover.Conflict, "cgroup %s counts no memory", g.name)
	}
	c := g.parent.child(name)
	c.keep(slices.Collect(maps.Keys(g.byCtl)))
	c.parent = g.parent
	for i, dir := range g.dirs {
		if err := unix.Rename(dir, c.dirs[i]); err != nil {
			return nil, fmt.Errorf("renaming cgroup %s: %w", g.name, err)
		}
	}
	return c, nil
}

// Empty reports that there is no process in the group, not even a dead one; false also where that cannot be told. Lists of
// processes of v1 may be a second old.
func (g *Group) Empty() bool {
	count, err := readFile(g.byCtl["pids"], "pids.current")
	return err == nil && string(count) == "0\n"
}

// existing lists the controllers whose directories are there.
func (g *Group) existing() []string {
	var there []string
	for controller, dir := range g.byCtl {
		if _, err := os.Stat(dir); err == nil {
			there = append(there, controller)
		}
	}
	return there
}

// keep forgets the trees of other controllers.
func (g *Group) keep(controllers []string) {
	if g.version == V2 {
		return
	}
	g.dirs = nil
	for c, dir := range g.byCtl {
		if !slices.Contains(controllers, c) {
			delete(g.byCtl, c)
		} else if !slices.Contains(g.dirs, dir) {
			g.dirs = append(g.dirs, dir)
		}
	}
	slices.Sort(g.dirs)
	g.tops = g.dirs
}

// needed are the controllers for the limits, and one at least.
func (g *Group) needed(l Limits) []string {
	var need []string
	for _, c := range []string{"pids", "freezer", "cpuacct", "cpu", "memory"} {
		if g.byCtl[c] != "" {
			need = append(need, c)
			break
		}
	}
	if g.byCtl["memory"] != "" && (l.MemoryMax > 0 || l.MemoryLow > 0 || g.ownOOMKills() > 0) {
		need = append(need, "memory")
	}
	if l.CPUShares > 0 || l.CPUQuota > 0 {
		need = append(need, "cpu")
	}
	return need
}
