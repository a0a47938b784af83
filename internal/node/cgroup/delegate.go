package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// agentLeaf is where an agent goes in a group that was given to it: a group with controllers for its children may hold
// no processes.
const agentLeaf = "agent"

// ownGroup is this process's group in the v2 tree, as a path from its root; "" = it is in none.
func ownGroup() string {
	data, err := ownGroups()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return ""
}

// delegated returns what an agent without rights over the whole v2 tree can use. That is its own group, if it was
// delegated (systemd's Delegate=yes), or better the highest delegated group above it: that of the user's service
// manager. There our groups are no part of the agent's service. If they were, systemd before 254 could not start the
// service again while tasks run: it puts the new process into the service's own group, which then takes none.
func (i Info) delegated(root, own string) Info {
	if filepath.Base(own) == agentLeaf { // an earlier agent of this process went there
		own = filepath.Dir(own)
	}
	if own == "" || own == "/" || own == "." {
		return i
	}
	if err := given(filepath.Join(root, own)); err != nil {
		i.Reason = fmt.Sprintf("groups cannot be made in %s, and the agent's own group %s is not given to it "+
			"(systemd-run --user -p Delegate=yes drover agent …): %v", root, own, err)
		return i
	}
	top := own
	for above := filepath.Dir(own); above != "/" && given(filepath.Join(root, above)) == nil; above = filepath.Dir(above) {
		top = above
	}
	found := Probe(filepath.Join(root, top))
	if top == own {
		found.home = filepath.Join(root, own)
	}
	return found
}

// given returns why groups cannot be made in a group, and processes moved in it.
func given(dir string) error {
	for _, f := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := unix.Access(filepath.Join(dir, f), unix.W_OK); err != nil {
			return err
		}
	}
	return nil
}

// settle moves this process out of the group whose children get controllers.
func (i Info) settle() error {
	if i.home == "" {
		return nil
	}
	leaf := filepath.Join(i.home, agentLeaf)
	if err := mkdir(leaf); err != nil {
		return err
	}
	if err := write(leaf, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return fmt.Errorf("moving the agent into %s: %w", leaf, err)
	}
	return nil
}
