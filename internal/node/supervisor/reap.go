package supervisor

import (
	"os"

	"golang.org/x/sys/unix"
)

// reap collects a drover-init when it has ended. It waits in the runtime's poller where the kernel can do that (5.10):
// os.Process.Wait alone would hold a thread for each task.
func reap(p *os.Process) {
	if fd, err := unix.PidfdOpen(p.Pid, unix.PIDFD_NONBLOCK); err == nil {
		f := os.NewFile(uintptr(fd), "process")
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Read(func(fd uintptr) bool { return ended(int(fd)) }) // on an error Wait waits
		}
		_ = f.Close()
	}
	_, _ = p.Wait()
}

// ended reports whether the descriptor's process is a zombie, or gone.
func ended(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return n > 0 || err != nil && err != unix.EINTR // a bare errno
}
