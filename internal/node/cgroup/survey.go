package cgroup

import (
	"fmt"
	"strings"
)

// Weaker says what is kept by other means, or not at all, for want of a controller.
func (i Info) Weaker() (list []string) {
	for _, c := range []struct{ controller, instead string }{
		{"memory", "memory is limited for each process, not together, and its use is not measured"},
		{"pids", "processes are counted for each user"},
		{"cpu", "cpu is neither shared by weight nor limited"},
		{"cpuset", "reserved cores are not kept apart"},
	} {
		if why := i.Lacks(c.controller); why != "" {
			list = append(list, fmt.Sprintf("no %s cgroup controller (%s): %s", c.controller, why, c.instead))
		}
	}
	return list
}

// Survey says what this machine has for an agent with our rights, and what is weaker for want of more. It makes nothing.
func Survey() (has string, weaker []string) {
	const root = "/sys/fs/cgroup"
	return survey(root, ownGroup())
}

// survey is Survey of the tree at root, for tests. own is the agent's own group on v2.
func survey(root, own string) (has string, weaker []string) {
	info := Probe(root)
	if info.Version == V2 && !info.Writable {
		info = info.delegated(root, own)
	}
	if !info.Writable {
		return info.Version.String(), []string{info.Reason + ": limits are rlimits and the supervisor's own checks"}
	}
	has = fmt.Sprintf("%s: %s", info.Version, joined(info.Controllers))
	if info.Version == V2 && info.mounts[""] != root {
		has += " in " + info.mounts[""]
	}
	return has, info.Weaker()
}

// joined lists the controllers for people.
func joined(controllers []string) string {
	if len(controllers) == 0 {
		return "no controllers"
	}
	return strings.Join(controllers, " ")
}
