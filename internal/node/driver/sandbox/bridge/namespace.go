package bridge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/egress"
)

// A namespace that several tasks share belongs to the machine, so a task's users have no rights over it. These settings allow them what
// they may do in a container's own network.
var namespaceKnobs = map[string]string{ // a constant
	"/proc/sys/net/ipv4/ip_unprivileged_port_start": "0",
	"/proc/sys/net/ipv4/ping_group_range":           "0 2147483647",
}

// NewNamespace makes a network namespace with only a loopback, kept by a mount on the file at path until DropNamespace.
func NewNamespace(path string) error {
	return egress.OnThread(func() error { return newNamespace(path) })
}

// newNamespace leaves the thread in the new namespace: the caller must let it end.
func newNamespace(path string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making a network namespace: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("bringing the loopback up: %w", err)
	}
	for knob, value := range namespaceKnobs { // not every kernel has them
		if err := os.WriteFile(knob, []byte(value), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("setting up a network namespace: %w", err)
		}
	}
	return keep("/proc/thread-self/ns/net", path)
}

// KeepNamespace keeps the network namespace of a process at path, until DropNamespace.
func KeepNamespace(path string, pid int) error {
	return keep(fmt.Sprintf("/proc/%d/ns/net", pid), path)
}

// keep binds the namespace to a file, which holds it open without a process.
func keep(namespace, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keeping a network namespace: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := unix.Mount(namespace, path, "", unix.MS_BIND, ""); err != nil {
		return errors.Join(fmt.Errorf("keeping a network namespace at %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// HasNamespace reports whether a namespace is kept at path.
func HasNamespace(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.NSFS_MAGIC
}

// DropNamespace gives up the namespace at path, which ends with its last process. Idempotent.
func DropNamespace(path string) error {
	// It may be mounted more than once, by agents that were killed between a mount and its note.
	for HasNamespace(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("giving up the network namespace at %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
