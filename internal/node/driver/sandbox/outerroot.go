package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
)

// remembers reports whether a file system in memory keeps the marks by which an overlay in a user namespace knows what is
// deleted: user.* attributes. Kernels before 6.6 lack them, and there such an overlay cannot remove directories of images.
// So on those the agent's own root makes the overlay, with trusted.* attributes.
var remembers = sync.OnceValue(func() bool { // the kernel's
	fd, err := unix.MemfdCreate("drover-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return unix.Fsetxattr(fd, "user.drover", []byte("1"), 0) == nil
})

// outerRoot makes the writable layer and the overlay outside of the sandbox's user namespace. It uses up the layers' descriptors, and
// puts the overlay into the configuration in their place. The files belong to the sandbox's root.
func outerRoot(c *sandboxsetup.Config, m *mounter, owner int) error {
	var tmpfs, overlay int
	err := apart(func() (err error) {
		tmpfs, overlay, err = buildOuterRoot(c, m, owner)
		return err
	})
	if err != nil {
		return fmt.Errorf("making the root: %w", err)
	}
	c.Lowers, c.Outer = nil, &sandboxsetup.Outer{Writable: m.add(tmpfs), Root: m.add(overlay)}
	return nil
}

// outerStage is where it is put together: a directory that every machine has. Only the thread sees it.
const outerStage = "/tmp"

// buildOuterRoot must run on a thread of its own: it mounts, and changes the working directory. Paths are relative, as mount's options
// hold one page only.
func buildOuterRoot(c *sandboxsetup.Config, m *mounter, owner int) (tmpfs, overlay int, err error) {
	if err := unix.Mount("drover", outerStage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, c.WritableOptions()); err != nil {
		return -1, -1, fmt.Errorf("mounting the writable layer: %w", err)
	}
	if err := unix.Chdir(outerStage); err != nil {
		return -1, -1, err
	}
	for _, d := range []string{".", "root", "up", "work", "empty"} {
		if err := unix.Mkdir(d, 0o755); err != nil && d != "." {
			return -1, -1, err
		}
		if err := unix.Chown(d, owner, owner); err != nil {
			return -1, -1, err
		}
	}
	var lowers []string
	for i, l := range c.Lowers {
		name := fmt.Sprintf("l%d", i)
		if err := unix.Mkdir(name, 0o755); err != nil {
			return -1, -1, err
		}
		if err := unix.MoveMount(m.fds[l.FD], "", unix.AT_FDCWD, name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return -1, -1, fmt.Errorf("attaching layer %d: %w", i, err)
		}
		lowers = append(lowers, name)
	}
	options := "upperdir=up,workdir=work,lowerdir=" + strings.Join(lowers, ":")
	if err := unix.Mount("overlay", "root", "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return -1, -1, fmt.Errorf("mounting the overlay of %d layers: %w", len(lowers), err)
	}
	// The clones outlive the thread's mounts; the originals go with it.
	if overlay, err = unix.OpenTree(unix.AT_FDCWD, "root", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
		return -1, -1, err
	}
	if tmpfs, err = unix.OpenTree(unix.AT_FDCWD, ".", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
		_ = unix.Close(overlay)
		return -1, -1, err
	}
	return tmpfs, overlay, nil
}

// apart runs f on a thread with mounts and a working directory of its own, which ends with it.
func apart(f func() error) error {
	result := make(chan error, 1)
	go func() { // ends with f
		runtime.LockOSThread() // for good: the thread ends with it
		if unix.Gettid() == os.Getpid() {
			result <- apart(f) // the process's first thread cannot end, and what it is in others see
			runtime.UnlockOSThread()
			return
		}
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}
