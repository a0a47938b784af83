package handover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Files are what a drover-init gets.
type Files struct {
	Listener *os.File // the socket that it serves
	Config   *os.File // where it reads its configuration
	Log      *os.File // its own output
	LogDir   *os.File // of the main task
}

// Peer is the process id of the other end, as this process's namespace sees it; 0 if it cannot be seen.
func Peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid, errors.Join(err, cerr)
}

// Send hands the descriptors over.
func Send(conn *net.UnixConn, f Files) error {
	rights := unix.UnixRights(int(f.Listener.Fd()), int(f.Config.Fd()), int(f.Log.Fd()), int(f.LogDir.Fd()))
	if _, _, err := conn.WriteMsgUnix([]byte{1}, rights, nil); err != nil {
		return fmt.Errorf("handing descriptors over: %w", err)
	}
	return nil
}

// Result is nil once the supervisor was executed.
func Result(conn *net.UnixConn) error {
	const most = 4096
	text, err := io.ReadAll(io.LimitReader(conn, most))
	if len(text) > 0 {
		return errors.New(string(text))
	}
	if err != nil {
		return fmt.Errorf("waiting for the supervisor: %w", err)
	}
	return nil
}
