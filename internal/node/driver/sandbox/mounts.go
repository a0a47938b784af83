package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
)

// mounter turns host paths into detached mounts for one sandbox, and keeps the descriptors until they were sent.
type mounter struct {
	d      *Driver
	userns *os.File // the sandbox's; nil without root
	fds    []int
}

// tree is something of the host that the sandbox sees.
type tree struct {
	path      string
	readOnly  bool
	devices   bool // device files work in it
	recursive bool // with what is mounted below
	image     bool // if its owners cannot be shifted, those of no image can
	foreign   bool // its owners are nobody in the sandbox, whose root reads in it what everybody may
}

// source returns the tree as the set-up takes it: a detached mount with its owners shifted into the sandbox's id range. Without root it
// is just the path, which the sandbox opens with the same rights as ours.
func (m *mounter) source(t tree) (sandboxsetup.Source, error) {
	if m.d.rootless {
		return sandboxsetup.Source{FD: -1, Path: t.path, ReadOnly: t.readOnly}, nil
	}
	fd, err := m.detach(t)
	if err != nil {
		return sandboxsetup.Source{}, fmt.Errorf("opening %s: %w", t.path, err)
	}
	return sandboxsetup.Source{FD: m.add(fd)}, nil
}

// devices returns the folder that is the sandbox's /dev.
func (m *mounter) devices(dir string) (sandboxsetup.Source, error) {
	t := tree{path: dir, readOnly: true, devices: true}
	memory := m.d.devices.tree
	if memory == nil {
		return m.source(t)
	}
	fd, err := m.clone(int(memory.Fd()), t)
	if err != nil {
		return sandboxsetup.Source{}, fmt.Errorf("cloning /dev: %w", err)
	}
	return sandboxsetup.Source{FD: m.add(fd)}, nil
}

// add returns the position of a descriptor, which the mounter owns from then on.
func (m *mounter) add(fd int) int {
	m.fds = append(m.fds, fd)
	return len(m.fds) - 1
}

// detach clones what is at a path into a mount that is attached nowhere. The caller owns the descriptor.
func (m *mounter) detach(t tree) (int, error) {
	// The last step may not be a link: the path is the agent's or the operator's, its end may be in reach of a guest.
	at, err := unix.Open(t.path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return -1, errors.New("it is a symbolic link")
	}
	return m.clone(at, t)
}

// clone clones an open directory or file, and sets the mount's attributes. Where owners cannot be shifted it leaves them, and notes that
// for images.
func (m *mounter) clone(at int, t tree) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)
	attrFlags := uint(unix.AT_EMPTY_PATH)
	if t.recursive {
		flags |= unix.AT_RECURSIVE
		attrFlags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(at, "", flags)
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	if t.readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if !t.devices {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if m.userns != nil && !t.foreign && !m.d.plainMounts.Load() {
		shifted := attr
		shifted.Attr_set |= unix.MOUNT_ATTR_IDMAP
		shifted.Userns_fd = uint64(m.userns.Fd())
		if unix.MountSetattr(fd, "", attrFlags, &shifted) == nil {
			return fd, nil
		}
		if t.image {
			m.d.plainMounts.Store(true)
		}
	}
	if err := unix.MountSetattr(fd, "", attrFlags, &attr); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// close closes the descriptors, which the child has received or never will.
func (m *mounter) close() {
	for _, fd := range m.fds {
		_ = unix.Close(fd)
	}
	m.fds = nil
}
