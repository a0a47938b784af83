package handover

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pair is the agent's connection and the guest's descriptor of it.
func pair(t *testing.T) (*net.UnixConn, int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), Socket)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
	conn, err := l.AcceptUnix()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	t.Cleanup(func() { _ = conn.Close() })
	return conn, fd
}

func TestDescriptorsArriveInTheirOrder(t *testing.T) {
	t.Parallel()
	agent, guest := pair(t)
	defer unix.Close(guest)
	var files [count]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		require.NoError(t, err)
		_, err = f.WriteString(string(rune('0' + i)))
		require.NoError(t, err)
		defer f.Close()
		files[i] = f
	}
	require.NoError(t, Send(agent, Files{Listener: files[0], Config: files[1], Log: files[2], LogDir: files[3]}))
	fds, err := receive(guest)
	require.NoError(t, err)
	require.Len(t, fds, count)
	for i, fd := range fds {
		b := make([]byte, 1)
		_, err := syscall.Pread(fd, b, 0)
		require.NoError(t, err)
		require.Equal(t, string(rune('0'+i)), string(b))
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC, "no program of the guest inherits it")
		require.NoError(t, unix.Close(fd))
	}
	pid, err := Peer(agent)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), pid)
}

func TestAnAgentThatGivesUp(t *testing.T) {
	t.Parallel()
	agent, guest := pair(t)
	defer unix.Close(guest)
	require.NoError(t, agent.Close())
	_, err := receive(guest)
	require.ErrorIs(t, err, errShort)

	agent, second := pair(t)
	defer unix.Close(second)
	_, err = agent.Write([]byte{1}) // without descriptors
	require.NoError(t, err)
	_, err = receive(second)
	require.ErrorIs(t, err, errShort)
}

// TestTheResultIsHeard: silence and the end are success, a text is the failure.
func TestTheResultIsHeard(t *testing.T) {
	t.Parallel()
	agent, guest := pair(t)
	require.NoError(t, unix.Close(guest)) // as when it was executed
	require.NoError(t, Result(agent))

	agent, guest = pair(t)
	failed := make(chan error, 1)
	go func() { failed <- Result(agent) }() // ends with the connection
	_, err := unix.Write(guest, []byte("no such thing"))
	require.NoError(t, err)
	require.NoError(t, unix.Close(guest))
	require.EqualError(t, <-failed, "no such thing")

	agent, guest = pair(t)
	defer unix.Close(guest)
	require.NoError(t, agent.Close())
	err = Result(agent)
	require.True(t, errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF), "%v", err)
}

func TestDescriptorsAreMovedOutOfTheWay(t *testing.T) {
	t.Parallel()
	low, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	high, err := moved(low)
	require.NoError(t, err)
	require.GreaterOrEqual(t, high, 32)
	require.NoError(t, unix.Close(high))
	_, err = moved(-1)
	require.Error(t, err)
	require.Equal(t, 2, Main(nil), "it wants one argument")
	require.Equal(t, 1, Main([]string{"/none"}), "nobody listens there")
}
