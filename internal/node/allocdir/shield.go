package allocdir

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/forked"
)

const shieldFlags = unix.ST_NOSUID | unix.ST_NODEV

// Shield puts the folder, which must exist, on a mount of its own with nosuid and nodev. There set-user-id bits, file
// capabilities and device files have no effect. So a program that a task leaves there as root of its container gives no
// rights to other users of the machine. What containers mount from there inherits this. The mount outlives the agent; a
// mount of an earlier agent, or a file system with these options, is used as it is. Without root Shield does nothing,
// and no task has more rights than the agent.
func (r Root) Shield() (err error) {
	for _, place := range r.everywhere() {
		err = errors.Join(err, place.shield())
	}
	return err
}

func (r Root) shield() error {
	var st unix.Statfs_t
	if os.Geteuid() != 0 || unix.Statfs(r.Path(), &st) == nil && st.Flags&shieldFlags == shieldFlags {
		return nil
	}
	// What an agent without a shield mounted for tasks that still run is to be seen through it, and once.
	hidden, err := mountsBelow(r.Path())
	if err != nil {
		return err
	}
	defer func() {
		for _, fd := range hidden {
			_ = unix.Close(fd)
		}
	}()
	tree, err := unix.OpenTree(unix.AT_FDCWD, r.Path(), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("mounting the allocations' folder on itself: %w", err)
	}
	defer unix.Close(tree)
	// Private first: else it would be one with the mount below, and what is mounted on the one would appear on the other. On a
	// mount that is shared it becomes so too, by itself: a daemon with mounts of its own sees what happens.
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr)
	if err == nil {
		err = unix.MoveMount(tree, "", unix.AT_FDCWD, r.Path(), unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("mounting the allocations' folder on itself: %w", err)
	}
	for _, fd := range hidden {
		err = errors.Join(err, unix.Unmount(fmt.Sprintf("/proc/self/fd/%d", fd), unix.MNT_DETACH))
	}
	return err
}

// mountsBelow opens the mounts in a folder.
func mountsBelow(folder string) (fds []int, err error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("looking for mounts: %w", err)
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[4], folder+"/") {
			continue
		}
		if fd, err := unix.Open(f[4], unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds, nil
}

// Unshield ends the mount unless a task still uses what is on it, or a folder is open to one. force: whatever uses it.
func (r Root) Unshield(force bool) (err error) {
	for _, place := range r.everywhere() {
		err = errors.Join(err, place.unshield(force))
	}
	return err
}

func (r Root) unshield(force bool) error {
	if os.Geteuid() != 0 || !mountPoint(r.Path()) || covered(r.Path()) { // another file system is not our mount
		return nil
	}
	if !force && r.anyOpen() {
		return nil
	}
	flags := unix.UMOUNT_NOFOLLOW
	if force {
		flags |= unix.MNT_DETACH
	}
	if err := forked.Unmount(r.Path(), flags); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("unmounting the allocations' folder: %w", err)
	}
	return nil
}

// anyOpen reports whether any allocation's folder is open to a task's user. It says yes when it cannot look: the mount
// stays then.
func (r Root) anyOpen() bool {
	entries, err := os.ReadDir(r.Path())
	return err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		info, err := e.Info()
		return err == nil && open(info)
	})
}

// mountPoint reports whether the kernel calls the path the root of a mount. Unlike a comparison of devices, this also
// finds a folder that is mounted on itself.
func mountPoint(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
