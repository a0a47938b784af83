package groupnet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
)

const (
	modeBridge   = "bridge"
	driverDocker = "docker"
	driverPodman = "podman" // joins any namespace, as raw_exec does
)

// sandboxes are the drivers whose tasks connect to the bridge themselves.
var sandboxes = []string{"sandbox", "exec", "java", "qemu"}

// shares reports whether the group's tasks have one namespace. One in a network of CNI is always made here.
func shares(g *drover.TaskGroup) bool {
	if g.Pool != nil || len(g.Networks) == 0 || !slices.ContainsFunc(g.Tasks, known) {
		return false
	}
	return cniName(g) != "" || g.Networks[0].Mode == modeBridge && (len(g.Tasks) > 1 || !slices.Contains(sandboxes, g.Tasks[0].Driver))
}

// cniName is the name of the group's network of CNI; "" if it has none.
func cniName(g *drover.TaskGroup) string {
	if len(g.Networks) == 0 {
		return ""
	}
	return g.Networks[0].CNIName()
}

// outside refuses a task that would silently be in another network than its group asks for. One that names a network of its own has that.
func outside(g *drover.TaskGroup, t *drover.Task) error {
	if name := cniName(g); name != "" && !known(t) && !pretends(t) {
		return drover.Errorf(drover.Invalid, "network of the group: driver %s cannot put a task into the CNI network %q", t.Driver, name)
	}
	return nil
}

// pretends reports whether the task is of a driver that runs nothing.
func pretends(t *drover.Task) bool { return t.Driver == "mock_driver" || t.Driver == "fake" }

// known are the drivers whose tasks can join a namespace.
func known(t *drover.Task) bool {
	return t.Driver == driverDocker || t.Driver == driverPodman || t.Driver == "raw_exec" || slices.Contains(sandboxes, t.Driver)
}

// ownNetwork reports whether the task is not in its group's.
func ownNetwork(t *drover.Task) bool {
	mode, _ := t.Config["network_mode"].(string)
	return mode != "" || !known(t)
}

// ensure makes the namespace if there is none, or docker's part of it is gone. The caller holds s.mu.
func (n *Networks) ensure(ctx context.Context, s *shared, alloc *drover.Allocation, group *drover.TaskGroup) error {
	path := n.path(alloc.ID)
	if s.made && s.record.Container {
		pid, err := n.cfg.Holder.NetworkHeld(ctx, containerName(alloc.ID))
		if err != nil {
			return err
		}
		if s.made = pid > 0 && sameFile(namespaceOf(pid), path); !s.made && occupied(path) {
			return drover.Errorf(
				drover.Conflict,
				"the container that held it is gone, and other tasks of the group are still in it: stop the allocation, so that another takes its "+
					"place",
			)
		}
	}
	if s.made {
		return n.enclose(s, alloc.ID)
	}
	if why := n.cfg.Bridge.Missing(); why != "" && cniName(group) == "" {
		return drover.Errorf(drover.Unavailable, "mode bridge cannot be had on this node: %s", why)
	}
	if err := n.detach(ctx, s, alloc.ID); err != nil {
		return err // of an earlier try: its plugins may still hold the ports
	}
	forwarded := s.forward != nil // ports led there before: the address stays
	if err := n.describe(s, alloc, group); err != nil {
		return err
	}
	err := n.make(ctx, s, alloc.ID)
	if err == nil && !forwarded && s.record.CNI == nil {
		s.forward, err = n.cfg.Bridge.Forward(s.address, s.record.Ports)
	}
	if err != nil {
		s.forward.Close()
		s.forward = nil
		if undo := n.unmake(context.WithoutCancel(ctx), s, alloc.ID); undo != nil {
			n.cfg.Log.Error("a network namespace that could not be made stays", "alloc", alloc.ID, "error", undo)
		}
		return err
	}
	s.made = true
	n.show(s)
	return nil
}

// describe writes down what will be made.
func (n *Networks) describe(s *shared, alloc *drover.Allocation, group *drover.TaskGroup) (err error) {
	r := record{Hostname: hostname(alloc, group)}
	if alloc.AllocatedResources != nil {
		r.Ports = alloc.AllocatedResources.Shared.Ports
	}
	r.Container = slices.ContainsFunc(group.Tasks, func(t *drover.Task) bool { return t.Driver == driverDocker && !ownNetwork(t) })
	if r.Container && n.cfg.Holder == nil {
		return drover.Errorf(drover.Unavailable, "this node has no docker driver")
	}
	if name := cniName(group); name != "" {
		if n.cfg.CNI == nil {
			return drover.Errorf(drover.Unavailable, "this node has no CNI networks")
		}
		var args map[string]string
		if c := group.Networks[0].CNI; c != nil {
			args = c.Args
		}
		if r.CNI, err = n.cfg.CNI.Plan(name, alloc, args, r.Ports); err != nil {
			return err
		}
	} else if !s.address.IsValid() {
		if s.address, err = n.cfg.Bridge.Take(bridge.Jobs); err != nil {
			return err
		}
	}
	if r.CNI == nil {
		r.Address, r.Pending = s.address.String(), true
	}
	s.record = r
	return n.write(alloc.ID, s.record)
}

// attach gives the namespace its place in the network.
func (n *Networks) attach(ctx context.Context, s *shared, allocID string) error {
	if s.record.CNI == nil {
		if err := n.cfg.Bridge.ConnectAt(s.address, n.path(allocID)); err != nil {
			return err
		}
		s.record.Pending, s.record.IPv6 = false, n.cfg.Bridge.HasIPv6(s.address)
		return n.write(allocID, s.record)
	}
	if err := n.cfg.CNI.Attach(ctx, s.record.CNI, n.path(allocID)); err != nil {
		return err
	}
	s.enclosed = "" // the namespace is new
	if err := n.enclose(s, allocID); err != nil {
		return err
	}
	return n.write(allocID, s.record) // with what the plugins gave
}

// detach undoes what plugins of CNI did, or began, for the namespace, which is gone after a restart of the machine.
func (n *Networks) detach(ctx context.Context, s *shared, allocID string) error {
	if s.record.CNI == nil {
		return nil
	}
	path := n.path(allocID)
	if !bridge.HasNamespace(path) {
		path = ""
	}
	return n.cfg.CNI.Detach(ctx, s.record.CNI, path)
}

// hostname of the container that holds the namespace, which docker gives to those that join it.
func hostname(alloc *drover.Allocation, group *drover.TaskGroup) string {
	if h := group.Networks[0].Hostname; h != "" {
		return h
	}
	for _, t := range group.Tasks {
		if h, _ := t.Config["hostname"].(string); t.Driver == driverDocker && h != "" {
			return h
		}
	}
	return group.Name + "-" + alloc.ID[:min(len(alloc.ID), 8)]
}

// make builds what describe wrote down: the namespace, held by a container if one of the tasks is docker's, and its
// place in the network. Remains of an earlier try go first. s.mu is held.
func (n *Networks) make(ctx context.Context, s *shared, allocID string) error {
	path := n.path(allocID)
	if err := bridge.DropNamespace(path); err != nil {
		return err
	}
	if s.record.CNI == nil {
		if err := n.cfg.Bridge.Reset(s.address); err != nil {
			return err
		}
	}
	if s.record.Container {
		pid, err := n.cfg.Holder.HoldNetwork(ctx, containerName(allocID), s.record.Hostname)
		if err != nil {
			return err
		}
		if err := bridge.KeepNamespace(path, pid); err != nil {
			return err
		}
	} else if err := bridge.NewNamespace(path); err != nil {
		return err
	}
	return n.attach(ctx, s, allocID)
}

// namespaceOf is the file that stands for the network namespace of a process. It lives as long as the process.
func namespaceOf(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid), "ns/net") }

// sameFile reports whether two paths lead to one file; false if one leads nowhere.
func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// occupied reports whether any process is in the namespace at path.
func occupied(path string) bool {
	all, err := filepath.Glob("/proc/[0-9]*/ns/net")
	return err == nil && slices.ContainsFunc(all, func(p string) bool { return sameFile(p, path) })
}
