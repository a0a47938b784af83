package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// prepareV2 hands the controllers down from the root to the parent group. Those that the kernel refuses are done without.
func (m *Groups) prepareV2() error {
	if err := m.info.settle(); err != nil {
		return err
	}
	dir := m.info.mounts[""]
	if err := vacate(dir); err != nil {
		return err
	}
	for _, p := range strings.Split(m.parent, "/") {
		if err := m.info.handDownWithin(dir); err != nil {
			return err
		}
		dir = filepath.Join(dir, p)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mkdir(filepath.Join(dir, supervisors)); err != nil {
		return err
	}
	return m.info.handDownWithin(dir)
}

// handDownWithin hands down what the machine offers, and forgets what it refuses.
func (i *Info) handDownWithin(dir string) error {
	refused, err := enableControllers(dir, i.Controllers)
	for c, why := range refused {
		i.lack(c, why.Error())
	}
	return err
}

// handDown gives all controllers that a v2 group has to its children.
func handDown(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	refused, err := enableControllers(dir, strings.Fields(string(controllers)))
	for _, c := range wanted {
		err = errors.Join(err, refused[c])
	}
	return err
}

// enableControllers writes each controller apart: one that cannot be had must not cost us the others.
func enableControllers(dir string, controllers []string) (refused map[string]error, err error) {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return nil, fmt.Errorf("reading the subtree controllers: %w", err)
	}
	enabled := strings.Fields(string(have))
	refused = map[string]error{}
	for _, c := range controllers {
		if slices.Contains(enabled, c) {
			continue
		}
		if err := write(dir, "cgroup.subtree_control", "+"+c); err != nil {
			refused[c] = err
		}
	}
	return refused, nil
}

// vacatedLeaf is where the processes of a container go, as in Docker's own image of Docker.
const vacatedLeaf = "init"

// vacate moves all processes of the group into a leaf: in a container the root of the tree is the container's own group,
// which has its processes in it. As long as it has, some controllers cannot be handed down, and the others make its children
// unusable. The root of a machine is exempt.
func vacate(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err != nil {
		return nil // the machine's root, which has no type
	}
	procs, err := readFile(dir, "cgroup.procs")
	if err != nil || len(procs) == 0 {
		return err
	}
	if slices.Contains(strings.Fields(string(procs)), "0") {
		return drover.Errorf(
			drover.Unavailable, "processes outside of this container are in its control group %s, which can hand down no limits", dir,
		)
	}
	leaf := filepath.Join(dir, vacatedLeaf)
	if err := mkdir(leaf); err != nil {
		return err
	}
	const rounds = 10 // for those that are forked meanwhile
	for range rounds {
		procs, err := readFile(dir, "cgroup.procs")
		if err != nil || len(procs) == 0 {
			return err
		}
		for pid := range strings.FieldsSeq(string(procs)) {
			if err := write(leaf, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("moving the container's processes out of the way: %w", err)
			}
		}
	}
	return drover.Errorf(drover.Unavailable, "there are always new processes in %s", dir)
}
