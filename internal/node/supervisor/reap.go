package supervisor

import (
	"os"

	"golang.org/x/sys/unix"

	"drover/internal/node/supervisor/spawn"
)

// started is a drover-init that was started: as a program, or staged.
type started struct {
	pid     int
	process *os.Process
	staged  *spawn.Staged
}

// reap collects a drover-init when it has ended. It waits in the runtime's poller where the kernel can do that (5.10):
// os.Process.Wait alone would hold a thread for each task.
func (s *started) reap() {
	if s.staged != nil {
		await(s.staged.PidFD)
		_, _ = unix.Wait4(s.pid, nil, 0, nil)
		s.staged.Close()
		return
	}
	if fd, err := unix.PidfdOpen(s.pid, unix.PIDFD_NONBLOCK); err == nil {
		await(os.NewFile(uintptr(fd), "process"))
	}
	_, _ = s.process.Wait()
}

// kill kills it, if it was not collected yet.
func (s *started) kill() {
	if s.staged == nil {
		_ = s.process.Kill()
		return
	}
	if raw, err := s.staged.PidFD.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
}

// await returns when the descriptor's process has ended, or cannot be waited for, and closes it.
func await(pidfd *os.File) {
	if raw, err := pidfd.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool { return ended(int(fd)) })
	}
	_ = pidfd.Close()
}

// ended reports whether the descriptor's process is a zombie, or gone.
func ended(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return n > 0 || err != nil && err != unix.EINTR // a bare errno
}
