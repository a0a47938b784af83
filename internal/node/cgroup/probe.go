package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Version of the hierarchy in use.
type Version uint8

// The versions. V1 stands also for hybrids whose v2 tree lacks memory or pids.
const (
	None Version = iota
	V1
	V2
)

// String returns "none", "v1" or "v2".
func (v Version) String() string { return [...]string{"none", "v1", "v2"}[v] }

// wanted are the controllers which we use if they are there.
var wanted = []string{"cpu", "cpuacct", "memory", "pids", "cpuset", "freezer"}

// Info is what a machine offers.
type Info struct {
	Version     Version
	Controllers []string          // of wanted, those that are there
	Writable    bool              // groups can be made
	Reason      string            // why not, if so
	lacks       map[string]string // controllers that were refused, and why
	mounts      map[string]string
	home        string // v2: a group that was given to the agent, which is in it; "" = the whole tree is ours
	tracking    string // v1: an extra tree (unified or systemd) that process managers look at
}

// Has reports whether the controller is there.
func (i Info) Has(controller string) bool { return slices.Contains(i.Controllers, controller) }

// Lacks says why there is no such controller; "" if there is.
func (i Info) Lacks(controller string) string {
	if i.Has(controller) {
		return ""
	}
	if why := i.lacks[controller]; why != "" {
		return why
	}
	if i.Version == V2 {
		return filepath.Join(i.mounts[""], "cgroup.controllers") + " does not list it"
	}
	return "it is not mounted"
}

// lack takes a controller off the list and keeps why. The list is copied, as other values of Info may share it.
func (i *Info) lack(controller, why string) {
	i.Controllers = slices.DeleteFunc(slices.Clone(i.Controllers), func(c string) bool { return c == controller })
	if i.lacks == nil {
		i.lacks = map[string]string{}
	}
	i.lacks[controller] = why
}

// Probe looks at the tree mounted at root, usually /sys/fs/cgroup.
func Probe(root string) Info {
	if data, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil {
		info := Info{Version: V2, mounts: map[string]string{"": root}}
		for _, c := range strings.Fields(string(data)) {
			if slices.Contains(wanted, c) {
				info.Controllers = append(info.Controllers, c)
			}
		}
		return info.probeWrite(root)
	}
	info := Info{mounts: map[string]string{}}
	for _, c := range wanted {
		dir := v1Mount(root, c)
		if dir == "" {
			continue
		}
		info.Version = V1
		info.Controllers = append(info.Controllers, c)
		info.mounts[c] = dir
	}
	if info.Version == None {
		info.Reason = "no cgroup tree is mounted at " + root
		return info
	}
	for _, t := range []string{"unified", "systemd"} {
		if _, err := os.Stat(filepath.Join(root, t, "cgroup.procs")); err == nil && info.tracking == "" {
			info.tracking = filepath.Join(root, t)
		}
	}
	return info.probeWrite(info.mounts[info.Controllers[0]])
}

// v1Mount returns where a v1 controller is mounted, "" if it is not. "cpu,cpuacct" stands for both.
func v1Mount(root, controller string) string {
	names := []string{controller}
	if controller == "cpu" || controller == "cpuacct" {
		names = append(names, "cpu,cpuacct", "cpuacct,cpu")
	}
	for _, n := range names {
		dir := filepath.Join(root, n)
		if _, err := os.Stat(filepath.Join(dir, "tasks")); err == nil {
			return dir
		}
	}
	return ""
}

// probeWrite fills in whether groups can be made in a directory, judged by its permissions and without making one.
func (i Info) probeWrite(dir string) Info {
	if err := unix.Access(dir, unix.W_OK); err != nil {
		i.Reason = "groups cannot be made in " + dir + ": " + err.Error()
		return i
	}
	i.Writable = true
	return i
}
