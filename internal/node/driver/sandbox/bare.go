package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// canBare reports whether sandboxes can begin in a mount namespace without the machine's mounts. In such a one there is no /proc that could
// be seen, so their own is mounted from outside, which kernels before 6.18 cannot do.
func canBare() bool {
	own, err := unix.Open("/proc/self/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(own)
	fd, err := mountProc(own)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return spawn.CanBare()
}

// addProc makes the /proc of the child's processes, which is mounted nowhere yet.
func addProc(c *sandboxsetup.Config, m *mounter, child *spawn.Staged) error {
	processes, err := openNamespace(child, "pid", unix.PIDFD_GET_PID_NAMESPACE)
	if err != nil {
		return err
	}
	defer processes.Close()
	fd, err := mountProc(int(processes.Fd()))
	if err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	position := m.add(fd)
	c.Proc = &position
	return nil
}

// mountProc returns a detached mount of /proc for a namespace of processes, to whose user namespace it belongs.
func mountProc(processes int) (int, error) {
	config, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(config)
	if err := unix.FsconfigSetFd(config, "pidns", processes); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(config); err != nil {
		return -1, err
	}
	return unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

// openNamespace opens a namespace of a child: through its pidfd where the kernel can, as to look into its folder of /proc for the first
// time costs more.
func openNamespace(child *spawn.Staged, name string, request uint) (*os.File, error) {
	fd, failed := -1, errors.ErrUnsupported
	if raw, err := child.PidFD.SyscallConn(); err == nil {
		_ = raw.Control(func(pidfd uintptr) { fd, failed = unix.IoctlRetInt(int(pidfd), request) }) // Linux 6.11
	}
	if failed != nil {
		var err error
		if fd, err = unix.Open(fmt.Sprintf("/proc/%d/ns/%s", child.Pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("opening the %s namespace: %w", name, err)
		}
	}
	return os.NewFile(uintptr(fd), name), nil
}
