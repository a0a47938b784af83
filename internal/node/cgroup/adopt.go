package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// adoptedInit is where Adopt puts the process on v2, where a group with processes of its own cannot give controllers to
// its children.
const adoptedInit = "init"

// Adopt makes a Group of the groups that a process is in by somebody else's doing, a container's: its limits are that
// one's, its children are ours. The process is the group's supervisor, and on v2 it is moved into a leaf below. Do not
// Remove it: its maker does. Errors: Unavailable.
func (m *Groups) Adopt(name string, pid int) (*Group, error) {
	g, err := m.View(name, pid)
	if err != nil || m.info.Version != V2 {
		return g, err
	}
	return g, g.divide(pid)
}

// View is a Group to read, as Adopt makes it, without moving the process or making anything. Errors: Unavailable.
func (m *Groups) View(name string, pid int) (*Group, error) {
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "finding the cgroup of process %d: %w", pid, err)
	}
	return m.view(name, parsePaths(string(own)))
}

// parsePaths reads /proc/<pid>/cgroup: paths by controller, "" is v2's. They are as the container's runtime made them,
// by files or by systemd ("/system.slice/docker-<id>.scope").
func parsePaths(text string) map[string]string {
	paths := map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 || strings.Contains(f[2], "..") { // outside of our own cgroup namespace
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			paths[c] = f[2]
		}
	}
	return paths
}

// view makes the group of these paths, which are relative to each controller's mount. The root group is nobody's own,
// and its limits would be the machine's: it is refused with Unavailable.
func (m *Groups) view(name string, paths map[string]string) (*Group, error) {
	g := &Group{name: name, version: m.info.Version, byCtl: map[string]string{}, stats: openStats{room: &m.room}}
	if m.info.Version == V2 {
		return g, m.viewV2(g, paths[""])
	}
	for _, c := range m.payloadControllers() {
		if p := paths[c]; p != "" && p != "/" {
			g.byCtl[c] = filepath.Join(m.info.mounts[c], p)
		}
	}
	for _, dir := range g.byCtl {
		if !slices.Contains(g.dirs, dir) {
			g.dirs = append(g.dirs, dir)
		}
	}
	slices.Sort(g.dirs)
	g.initDir = g.dirs // it is born there, and so is what it starts
	if len(g.dirs) == 0 {
		return nil, drover.Errorf(drover.Unavailable, "%s is in no cgroup of its own", name)
	}
	return g, nil
}

// viewV2 fills in the directories on v2. A process that Adopt moved before is found in its leaf: the group is the one
// above.
func (m *Groups) viewV2(g *Group, path string) error {
	if filepath.Base(path) == adoptedInit {
		path = filepath.Dir(path)
	}
	if path == "" || path == "/" {
		return drover.Errorf(drover.Unavailable, "%s is in no cgroup of its own", g.name)
	}
	dir := filepath.Join(m.info.mounts[""], path)
	g.byCtl[""], g.dirs, g.initDir = dir, []string{dir}, []string{filepath.Join(dir, adoptedInit)}
	for _, c := range m.info.Controllers {
		g.byCtl[c] = dir
	}
	return nil
}

// divide makes a v2 group one that can have children with controllers.
func (g *Group) divide(pid int) error {
	if err := mkdir(g.initDir[0]); err != nil {
		return err
	}
	if err := write(g.initDir[0], "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return err
	}
	return handDown(g.dirs[0])
}
