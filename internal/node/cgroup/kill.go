package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Procs lists the processes of the payload's group and its children.
func (g *Group) Procs() ([]int, error) {
	var pids []int
	for _, dir := range g.dirs {
		var failed error
		walk(dir, func(d string) {
			data, err := readFile(d, "cgroup.procs")
			if err != nil && !gone(err) {
				failed = err
			}
			for f := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
		})
		if failed != nil {
			return nil, failed
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// Kill sends SIGKILL to everything in the payload's group and its children; nothing can fork away from it. It does not
// wait for the deaths: Remove does.
func (g *Group) Kill() error {
	g.made.Store(nil)
	if g.version == V2 {
		err := write(g.dirs[0], "cgroup.kill", "1")
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return ignoreGone(err)
		}
		if _, statErr := os.Stat(g.dirs[0]); statErr != nil {
			return nil //nolint:nilerr // the group is gone, and so is what was in it
		}
	}
	return g.killLoop()
}

// killLoop is for v1 and for kernels before 5.14: first nothing can fork any more, then everything is killed until two
// rounds find nobody new.
func (g *Group) killLoop() error {
	if dir := g.byCtl["pids"]; dir != "" {
		walk(dir, func(d string) { _ = write(d, "pids.max", "0") })
	}
	// We ourselves are listed for as long as a thread of ours forks a supervisor from there (JoinInit).
	sent := map[int]bool{os.Getpid(): true}
	for {
		pids, err := g.Procs()
		if err != nil {
			return ignoreGone(err)
		}
		fresh := false
		for _, pid := range pids {
			if !sent[pid] {
				fresh, sent[pid] = true, true
				_ = unix.Kill(pid, unix.SIGKILL) // gone already is fine
			}
		}
		if !fresh {
			return nil
		}
	}
}

// gone reports whether a group was removed: before its file was opened (ENOENT), or after (ENODEV).
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// ignoreGone is for operations that a removed group has done by being gone.
func ignoreGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}
