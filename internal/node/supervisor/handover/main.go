package handover

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Command is drover-init's first argument; the second is the socket's path.
const Command = "container"

// Socket is the name of the socket in the folder that is mounted.
const Socket = "h"

// Order of the descriptors in the message.
const (
	listenerAt = iota
	configAt
	logAt // drover-init's own output
	logDirAt
	count
)

// Main fetches the descriptors and executes the supervisor. It returns only when that failed; the reason went to the
// agent.
func Main(args []string) int {
	runtime.LockOSThread()
	if len(args) != 1 {
		return 2
	}
	low, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 1
	}
	fd, err := moved(low)
	if err != nil {
		return 1
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: args[0]}); err != nil {
		fmt.Println("drover-init: connecting to the agent:", err) // nobody else is there
		return 1
	}
	_, _ = unix.Write(fd, []byte(become(fd).Error()))
	return 1
}

// become executes the supervisor; the connection ends with that.
func become(fd int) error {
	fds, err := receive(fd)
	if err != nil {
		return err
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening /dev/null: %w", err)
	}
	fds = append(fds, null)
	for i := range fds {
		if fds[i], err = moved(fds[i]); err != nil {
			return err
		}
	}
	targets := map[int]int{
		0: fds[count], 1: fds[logAt], 2: fds[logAt],
		wire.ListenerFD: fds[listenerAt], wire.ConfigFD: fds[configAt], wire.LogDirFD: fds[logDirAt],
	}
	for to, from := range targets {
		if err := unix.Dup3(from, to, 0); err != nil {
			return fmt.Errorf("passing descriptors: %w", err)
		}
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	env := []string{"GOMAXPROCS=1", "GODEBUG=madvdontneed=1"}
	if limit, ok := os.LookupEnv(wire.OpenFilesVariable); ok {
		env = append(env, wire.OpenFilesVariable+"="+limit)
	}
	err = syscall.Exec("/proc/self/exe", []string{"drover-init"}, env)
	return fmt.Errorf("executing the supervisor: %w", err)
}

// moved takes a descriptor out of the way of the numbers that are filled.
func moved(fd int) (int, error) {
	const safe = 32
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, safe)
	if err != nil {
		return -1, fmt.Errorf("moving a descriptor: %w", err)
	}
	return high, unix.Close(fd)
}

var errShort = errors.New("the agent gave up before it handed the descriptors over") // a constant error

// receive takes the descriptors of one message, count of them; fewer are as bad as none. They are closed at an exec until main says
// otherwise.
func receive(fd int) ([]int, error) {
	var buf [1]byte
	oob := make([]byte, unix.CmsgSpace(count*4))
	n, oobn, _, _, err := unix.Recvmsg(fd, buf[:], oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receiving descriptors: %w", err)
	}
	if n == 0 {
		return nil, errShort
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, fmt.Errorf("reading descriptors: %w", err)
	}
	var fds []int
	for i := range messages {
		got, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("reading descriptors: %w", err)
		}
		fds = append(fds, got...)
	}
	if len(fds) != count {
		return nil, errShort
	}
	return fds, nil
}
