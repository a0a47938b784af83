package nsinit

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// stage is where the new root is put together: a directory that every machine has. Only this mount namespace sees it.
const stage = "/tmp"

// setup builds the root and enters it.
func setup(c *Config, fds []int) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	layers, binds, err := resolve(c, fds)
	if err != nil {
		return err
	}
	if err := openLogs(c, fds); err != nil {
		return err
	}
	scratch, empty, err := buildRoot(c, layers)
	if err != nil {
		return err
	}
	if err := enterRoot(); err != nil {
		return err
	}
	if err := attach(c, binds, scratch); err != nil {
		return err
	}
	if err := kernelKnobs(c); err != nil {
		return err
	}
	if err := cover(c, empty); err != nil {
		return err
	}
	if c.ReadOnly {
		return remountReadOnly("/")
	}
	return nil
}

// resolve turns layers and binds into detached mounts, while the host's paths can be seen.
func resolve(c *Config, fds []int) (layers, binds []int, err error) {
	layers, binds = make([]int, len(c.Lowers)), make([]int, len(c.Binds))
	for i, l := range c.Lowers {
		if layers[i], err = l.open(fds); err != nil {
			return nil, nil, fmt.Errorf("opening layer %d: %w", i, err)
		}
	}
	for i, b := range c.Binds {
		if binds[i], err = b.open(fds); err != nil {
			return nil, nil, fmt.Errorf("opening the source of %s: %w", b.Target, err)
		}
	}
	return layers, binds, nil
}

// logFD is where the supervisor expects its log folder.
const logFD = 5

func openLogs(c *Config, fds []int) error {
	if c.Logs == nil {
		return nil
	}
	tree, err := c.Logs.open(fds)
	if err != nil {
		return fmt.Errorf("opening the log folder: %w", err)
	}
	dir, err := unix.Openat(tree, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the log folder: %w", err)
	}
	return unix.Dup3(dir, logFD, 0)
}

// open returns the detached mount.
func (s Source) open(fds []int) (int, error) {
	if s.FD >= len(fds) {
		return -1, errors.New("its descriptor is missing")
	}
	if s.FD >= 0 {
		return fds[s.FD], nil
	}
	return cloneMount(s.Path, s.ReadOnly)
}

// buildRoot mounts the size-limited file system, the layers and /proc, and returns detached mounts of the scratch
// directories and of an empty one.
func buildRoot(c *Config, layers []int) (scratch []int, empty int, err error) {
	options := "mode=0755"
	if c.SizeMB > 0 {
		options += fmt.Sprintf(",size=%dm", c.SizeMB)
	}
	if c.Inodes > 0 {
		options += fmt.Sprintf(",nr_inodes=%d", c.Inodes)
	}
	if err := unix.Mount("drover", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, -1, fmt.Errorf("mounting the writable layer: %w", err)
	}
	if err := unix.Chdir(stage); err != nil {
		return nil, -1, err
	}
	for _, d := range []string{"root", "up", "work", "empty"} {
		if err := unix.Mkdir(d, 0o755); err != nil {
			return nil, -1, fmt.Errorf("making %s: %w", d, err)
		}
	}
	if err := mountOverlay(layers); err != nil {
		return nil, -1, err
	}
	if scratch, err = makeScratch(c.Scratch); err != nil {
		return nil, -1, err
	}
	if empty, err = cloneMount("empty", true); err != nil {
		return nil, -1, err
	}
	// A new /proc may be mounted only while the old one can be seen.
	if err := unix.Mount("proc", "root/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w (parts of the agent's own /proc are covered, as in a container: run that one with --security-opt systempaths=unconfined)", err)
		}
		return nil, -1, fmt.Errorf("mounting /proc: %w", err)
	}
	return scratch, empty, nil
}

func mountOverlay(layers []int) error {
	options := "userxattr,upperdir=up,workdir=work,lowerdir="
	for i, l := range layers {
		name := fmt.Sprintf("l%d", i)
		if err := unix.Mkdir(name, 0o755); err != nil {
			return err
		}
		if err := moveMount(l, name); err != nil {
			return fmt.Errorf("attaching layer %d: %w", i, err)
		}
		if i > 0 {
			options += ":"
		}
		options += name
	}
	if err := unix.Mount("overlay", "root", "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mounting the overlay of %d layers: %w", len(layers), err)
	}
	return nil
}

func makeScratch(dirs []Scratch) ([]int, error) {
	fds := make([]int, len(dirs))
	for i, s := range dirs {
		name := fmt.Sprintf("s%d", i)
		if err := unix.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
		if err := unix.Chmod(name, s.Mode); err != nil {
			return nil, err
		}
		if err := unix.Chown(name, int(s.UID), int(s.UID)); err != nil {
			return nil, fmt.Errorf("giving %s to %d: %w", s.Target, s.UID, err)
		}
		fd, err := cloneMount(name, false)
		if err != nil {
			return nil, err
		}
		fds[i] = fd
	}
	return fds, nil
}

// enterRoot makes stage/root the root and lets go of everything outside.
func enterRoot() error {
	if err := unix.Chdir("root"); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old root is now stacked on the new one
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detaching the old root: %w", err)
	}
	return unix.Chdir("/")
}

// attach puts the agent's mounts and the scratch directories in place. Targets are looked up in the new root.
func attach(c *Config, binds, scratch []int) error {
	if err := attachBinds(c, binds, false); err != nil {
		return err
	}
	for _, l := range c.Links {
		if err := unix.Symlink(l[1], "/dev/"+l[0]); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("linking /dev/%s: %w", l[0], err)
		}
	}
	if c.DevPTS != "" {
		if err := os.MkdirAll("/dev/pts", 0o755); err != nil {
			return err
		}
		if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, c.DevPTS); err != nil {
			return fmt.Errorf("mounting /dev/pts: %w", err)
		}
	}
	for i, s := range c.Scratch {
		if err := place(scratch[i], s.Target, false); err != nil {
			return err
		}
	}
	return attachBinds(c, binds, true)
}

func attachBinds(c *Config, binds []int, late bool) error {
	for i, b := range c.Binds {
		if b.Late != late {
			continue
		}
		if err := place(binds[i], b.Target, b.File); err != nil {
			return err
		}
	}
	return nil
}

// place attaches a detached mount, making the target if it is missing. It does not cover what is not of its kind.
func place(fd int, target string, file bool) error {
	target = path.Clean("/" + target)
	err := moveMount(fd, target)
	if errors.Is(err, unix.ENOENT) {
		if err = makeTarget(target, file); err == nil {
			err = moveMount(fd, target)
		}
	}
	if err != nil {
		return fmt.Errorf("mounting %s: %w", target, err)
	}
	return nil
}

func makeTarget(target string, file bool) error {
	if !file {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(path.Dir(target), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
