package nsinit

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// moveMount attaches a detached mount.
func moveMount(fd int, target string) error {
	return unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

// cloneMount returns a detached mount of a directory.
func cloneMount(dir string, readOnly bool) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("cloning the mount of %s: %w", dir, err)
	}
	if readOnly {
		if err := setReadOnly(fd); err != nil {
			return -1, err
		}
	}
	return fd, nil
}

func setReadOnly(fd int) error {
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

func remountReadOnly(target string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, target, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("making %s read-only: %w", target, err)
	}
	return nil
}

// cover hides what a guest has no business with.
func cover(c *Config, empty int) error {
	for _, p := range c.MaskFiles {
		if err := unix.Mount("/dev/null", p, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("masking %s: %w", p, err)
		}
	}
	for _, p := range c.MaskDirs {
		fd, err := unix.OpenTree(empty, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		if err != nil {
			return fmt.Errorf("masking %s: %w", p, err)
		}
		err = moveMount(fd, p)
		_ = unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("masking %s: %w", p, err)
		}
	}
	for _, p := range c.ReadOnlyPaths {
		fd, err := cloneMount(p, true)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		err = moveMount(fd, p)
		_ = unix.Close(fd)
		if err != nil {
			return fmt.Errorf("making %s read-only: %w", p, err)
		}
	}
	return nil
}
