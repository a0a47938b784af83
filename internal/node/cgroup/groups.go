package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Config of Groups.
type Config struct {
	Root   string // default /sys/fs/cgroup
	Parent string // default "drover"; a path below Root
}

// Groups makes and finds groups. Everything is in the kernel's tree, and it keeps no state but which of them are spare.
type Groups struct {
	info   Info
	parent string
	// v1: the trees in which supervisors have to be moved out of the agent's own group, and those groups of the agent.
	away  []string
	homes map[string]string
	held  *os.File // see hold; nil = closed
	// room is how many statistics files may still be kept open; the rest of the descriptors is for others.
	room   atomic.Int64
	spares spares
}

// New probes the machine and makes the parent groups. Errors: Unavailable when groups cannot be made; the caller then
// goes on without.
func New(cfg Config) (*Groups, error) {
	if cfg.Root == "" {
		cfg.Root = "/sys/fs/cgroup"
	}
	if cfg.Parent == "" {
		cfg.Parent = "drover"
	}
	m := &Groups{info: Probe(cfg.Root), parent: cfg.Parent}
	if m.info.Version == V2 && !m.info.Writable {
		m.info = m.info.delegated(cfg.Root, ownGroup())
	}
	m.room.Store(roomForStats())
	if m.info.Version == None || !m.info.Writable {
		return nil, drover.Errorf(drover.Unavailable, "no cgroups: %s", m.info.Reason)
	}
	if err := m.prepare(); err != nil {
		_ = m.Close(clock.Wall{}) // what is in use stays
		return nil, drover.Errorf(drover.Unavailable, "preparing the parent cgroup: %w", err)
	}
	return m, nil
}

// Info returns what was found.
func (m *Groups) Info() Info { return m.info }

// supervisors is the group, in the parent, of supervisors that may not be in their task's group. No task can have this
// name.
const supervisors = "supervisors"

// prepare takes the lock on the parent before it makes anything, so that a manager that is closing does not remove it.
func (m *Groups) prepare() error {
	if err := m.hold(); err != nil {
		return err
	}
	if err := m.makeParents(); err != nil || m.info.Version == V2 {
		return err
	}
	return m.findAway()
}

// makeParents makes the parent group in every tree, and beside the tasks the group for supervisors. It changes no
// limits.
func (m *Groups) makeParents() error {
	if m.info.Version == V2 {
		return m.prepareV2()
	}
	for _, dir := range m.trees(append(m.payloadControllers(), "cpuset")...) {
		parent := filepath.Join(dir, m.parent)
		for _, d := range []string{parent, filepath.Join(parent, supervisors)} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				return err
			}
			if err := inheritCpuset(d); err != nil {
				return err
			}
		}
	}
	if m.info.tracking != "" { // so that a service manager does not count supervisors as the agent's
		if err := os.MkdirAll(filepath.Join(m.info.tracking, m.parent, supervisors), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// separate reports whether a supervisor must stay out of the payload's group in a v1 tree: where the payload's limits
// could kill it or keep it from forking.
func (m *Groups) separate(tree string) bool {
	return tree == m.info.mounts["memory"] || tree == m.info.mounts["pids"]
}

// findAway lists the trees in which the agent is in a group of its own, whose limits and whose end are not for
// supervisors. A move costs up to a millisecond, so it is left out where there is nothing to leave.
func (m *Groups) findAway() error {
	own, err := ownGroups()
	if err != nil {
		return err
	}
	m.homes = map[string]string{}
	for line := range strings.Lines(string(own)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			dir := m.info.mounts[c]
			tracking := m.info.tracking != "" && filepath.Base(m.info.tracking) == map[string]string{"": "unified", "name=systemd": "systemd"}[c]
			if tracking {
				dir = m.info.tracking
			}
			if dir == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, f[2], "tasks")); err == nil {
				m.homes[dir] = filepath.Join(dir, f[2])
			}
			leave := tracking || c == "memory" || c == "pids"
			if leave && f[2] != "/" && !slices.Contains(m.away, dir) {
				m.away = append(m.away, dir)
			}
		}
	}
	return nil
}

// payloadControllers are those in which every task gets a group; cpuset only when cores were asked for.
func (m *Groups) payloadControllers() []string {
	return slices.DeleteFunc(slices.Clone(m.info.Controllers), func(c string) bool { return c == "cpuset" || c == "freezer" })
}

// trees returns the distinct mounts of the controllers, "cpu,cpuacct" once.
func (m *Groups) trees(controllers ...string) []string {
	var dirs []string
	for _, c := range controllers {
		if d := m.info.mounts[c]; d != "" && !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// Create makes the group of a task. owner is the uid which may clone its own processes into it on v2 (the
// supervisor's); it cannot change limits. A group of that name that is there is taken over.
func (m *Groups) Create(name string, limits Limits, owner int) (*Group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if g := m.spare(name, limits); g != nil {
		return g, nil
	}
	g := m.group(name, len(limits.Cores) > 0)
	if err := g.create(limits, owner); err != nil {
		_ = g.removeDirs()
		return nil, fmt.Errorf("creating cgroup %s: %w", name, err)
	}
	g.made.Store(&limits)
	return g, nil
}

// Open finds a group again. Errors: NotFound.
func (m *Groups) Open(name string) (*Group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	g := m.group(name, true)
	if there := g.existing(); len(there) > 0 {
		g.keep(there)
		return g, nil
	}
	return nil, drover.Errorf(drover.NotFound, "no cgroup %s", name)
}

// List names the groups that are there, in no order: also those that a crash left behind, but none that are spare.
func (m *Groups) List() ([]string, error) {
	seen := map[string]bool{}
	roots := m.trees(m.info.Controllers...)
	if m.info.Version == V2 {
		roots = []string{m.info.mounts[""]}
	}
	for _, root := range roots {
		entries, err := os.ReadDir(filepath.Join(root, m.parent))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listing cgroups: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != supervisors && !strings.HasPrefix(e.Name(), sparePrefix) {
				seen[e.Name()] = true
			}
		}
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	return names, nil
}

// checkName refuses names that would leave the parent group or meet a group of our own. Errors: Invalid.
func checkName(name string) error {
	if name == "" || name == supervisors || strings.ContainsAny(name, "/\x00\n") || strings.HasPrefix(name, ".") ||
		strings.HasPrefix(name, sparePrefix) {
		return drover.Errorf(drover.Invalid, "cgroup name %q is not usable", name)
	}
	return nil
}

// write writes a value at once, as the kernel wants it: each write is a command of its own. It neither creates nor
// truncates the file. The error says the value, the path and the kernel's reason.
func write(dir, file, value string) error {
	path := filepath.Join(dir, file)
	fd, err := openRaw(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Write(fd, []byte(value))
		switch {
		case err == nil:
			return nil
		case err != unix.EINTR: // a bare errno
			return fmt.Errorf("writing %q: %w", value, &fs.PathError{Op: "write", Path: path, Err: err})
		}
	}
}

// Close removes the parent groups if nothing is in them any more: for tests and for an agent that is taken off a
// machine.
func (m *Groups) Close(clk clock.Clock) error {
	return errors.Join(m.removeSpares(), m.removeHeld(func() error { return m.removeParents(clk) }))
}

// removeParents removes our empty groups in every tree. One that another manager on the machine uses stays: the kernel
// refuses to remove it.
func (m *Groups) removeParents(clk clock.Clock) error {
	roots := append(m.trees(m.info.Controllers...), m.info.tracking)
	if m.info.Version == V2 {
		roots = []string{m.info.mounts[""]}
	}
	m.sweepSpares()
	var errs []error
	for _, root := range slices.Backward(roots) { // the one with the lock last
		if root == "" {
			continue
		}
		for _, dir := range []string{filepath.Join(root, m.parent, supervisors), filepath.Join(root, m.parent)} {
			if err := removeParent(dir, clk); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// deathTakes is how long a process that has died may still hold its group.
const deathTakes = time.Second

// removeParent waits for processes that are dying, not for what lives or for groups below.
func removeParent(dir string, clk clock.Clock) error {
	until := clk.Now().Add(deathTakes)
	for {
		err := os.Remove(dir)
		if !errors.Is(err, unix.EBUSY) || inUse(dir) || clk.Now().After(until) {
			return err
		}
		<-clk.NewTimer(5 * time.Millisecond).C() // the kernel tells nobody
	}
}

// inUse reports whether there are processes in the group that are not dying, or groups below it.
func inUse(dir string) bool {
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	entries, listErr := os.ReadDir(dir)
	return err != nil || listErr != nil || len(procs) > 0 || slices.ContainsFunc(entries, fs.DirEntry.IsDir)
}
