package program

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/execution"
)

var defaultSize = execution.WindowSize{Rows: 24, Cols: 80} // a constant

// openTTY opens a new terminal of the guest: the master for us, the slave for the program.
func openTTY(size execution.WindowSize) (master *os.File, slave int, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("opening a terminal: %w", err)
	}
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
		slave, err = openPeer(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, -1, fmt.Errorf("opening a terminal: %w", err)
	}
	setSize(fd, size)
	return os.NewFile(uintptr(fd), "tty"), slave, nil
}

// openPeer opens the slave without a path: nothing that the guest mounts over /dev/pts matters.
func openPeer(master int) (int, error) {
	r, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if e == syscall.ENOTTY { // gVisor has no such call
		n, err := unix.IoctlGetUint32(master, unix.TIOCGPTN)
		if err != nil {
			return -1, err
		}
		return unix.Open("/dev/pts/"+strconv.Itoa(int(n)), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if e != 0 {
		return -1, e
	}
	return int(r), nil
}

// setSize sets the window's size, 24 by 80 if none is said. The kernel tells the programs by SIGWINCH.
func setSize(fd int, size execution.WindowSize) {
	if size.Rows == 0 || size.Cols == 0 {
		size = defaultSize
	}
	_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
}

// Resize sets the size of the terminal's window.
func (s *Stdio) Resize(size execution.WindowSize) {
	if raw, err := s.TTY.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { setSize(int(fd), size) })
	}
}
