package handover

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Files are what a drover-init gets.
type Files struct {
	Listener *os.File // the socket that it serves
	Config   *os.File // where it reads its configuration
	Log      *os.File // its own output
	LogDir   *os.File // of the main task
}

// Conn is a *net.UnixConn. Supervisors link this package, and package net would do its work at each of their starts.
type Conn interface {
	io.Reader
	syscall.Conn
}

// Peer is the process id of the other end, as this process's namespace sees it; 0 if it cannot be seen.
func Peer(conn Conn) (pid int, err error) {
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
func Send(conn Conn, f Files) error {
	rights := unix.UnixRights(int(f.Listener.Fd()), int(f.Config.Fd()), int(f.Log.Fd()), int(f.LogDir.Fd()))
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	werr := raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), []byte{1}, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	if err = errors.Join(err, werr); err != nil {
		return fmt.Errorf("handing descriptors over: %w", err)
	}
	return nil
}

// Result is nil once the supervisor was executed.
func Result(conn Conn) error {
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
