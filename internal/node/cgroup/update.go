package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Update sets the limits. A limit whose controller is missing is left out: Groups.Info tells.
func (g *Group) Update(l Limits) error {
	g.made.Store(nil)
	if g.version == V2 {
		return g.updateV2(l)
	}
	return g.updateV1(l)
}

// updateV2 sets each limit that is not zero; the others stay as they are. It tries all of them and joins the errors.
// Swap is closed, so that memory.max is all that a task gets.
func (g *Group) updateV2(l Limits) error {
	dir := g.dirs[0]
	set := func(controller, file, value string) error {
		if g.byCtl[controller] == "" {
			return nil
		}
		return write(dir, file, value)
	}
	var errs []error
	if l.MemoryMax > 0 {
		errs = append(errs, set("memory", "memory.max", itoa(l.MemoryMax)), optional(set("memory", "memory.swap.max", "0")))
	}
	if l.MemoryLow > 0 {
		errs = append(errs, set("memory", "memory.low", itoa(l.MemoryLow)))
	}
	if l.Pids > 0 {
		errs = append(errs, set("pids", "pids.max", itoa(l.Pids)))
	}
	if l.CPUShares > 0 {
		errs = append(errs, set("cpu", "cpu.weight", itoa(cpuWeight(l.CPUShares))))
	}
	if l.CPUQuota > 0 {
		errs = append(errs, set("cpu", "cpu.max", fmt.Sprintf("%d %d", cpuQuota(l.CPUQuota), cpuPeriod)))
	}
	if len(l.Cores) > 0 {
		errs = append(errs, set("cpuset", "cpuset.cpus", coreList(l.Cores)))
	}
	return errors.Join(errs...)
}

// updateV1 is updateV2 with the names of v1, where each controller has a directory of its own.
func (g *Group) updateV1(l Limits) error {
	set := func(controller, file string, value string) error {
		if dir := g.byCtl[controller]; dir != "" {
			return write(dir, file, value)
		}
		return nil
	}
	var errs []error
	if l.MemoryMax > 0 {
		errs = append(errs, g.setMemoryV1(l.MemoryMax))
	}
	if l.MemoryLow > 0 {
		errs = append(errs, set("memory", "memory.soft_limit_in_bytes", itoa(l.MemoryLow)))
	}
	if l.Pids > 0 {
		errs = append(errs, set("pids", "pids.max", itoa(l.Pids)))
	}
	if l.CPUShares > 0 {
		errs = append(errs, set("cpu", "cpu.shares", itoa(clampShares(l.CPUShares))))
	}
	if l.CPUQuota > 0 {
		errs = append(errs, set("cpu", "cpu.cfs_quota_us", itoa(cpuQuota(l.CPUQuota))))
	}
	if len(l.Cores) > 0 {
		errs = append(errs, set("cpuset", "cpuset.cpus", coreList(l.Cores)))
	}
	return errors.Join(errs...)
}

// setMemoryV1 writes memory and memory+swap in the order that the kernel wants: memsw is never below memory.
func (g *Group) setMemoryV1(limit int64) error {
	dir := g.byCtl["memory"]
	if dir == "" {
		return nil
	}
	value := itoa(limit)
	memsw := func() error { return optional(write(dir, "memory.memsw.limit_in_bytes", value)) }
	memory := func() error { return write(dir, "memory.limit_in_bytes", value) }
	if err := memory(); !errors.Is(err, unix.EINVAL) {
		return errors.Join(err, memsw())
	}
	return errors.Join(memsw(), memory()) // it grows
}

// optional forgives a file that this kernel does not have (swap accounting off).
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

// coreList is the list as a cpuset takes it, "0,2,3".
func coreList(cores []uint16) string {
	parts := make([]string, len(cores))
	for i, c := range cores {
		parts[i] = strconv.Itoa(int(c))
	}
	return strings.Join(parts, ",")
}
