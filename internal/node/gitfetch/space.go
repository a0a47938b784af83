package gitfetch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// mayUnshare reports whether this process may make namespaces.
var mayUnshare = sync.OnceValue(func() bool { // the process's
	if os.Geteuid() != 0 {
		return false
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&head, &data[0]) != nil {
		return false
	}
	for _, c := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN, unix.CAP_NET_ADMIN} {
		if data[0].Effective&(1<<c) == 0 {
			return false
		}
	}
	return true
})

// listen returns a listener on a loopback address. Apart, that is the only address of a network of its own, which comes too.
func listen(apart bool) (l net.Listener, space *os.File, err error) {
	if !apart {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		return l, nil, err
	}
	return listenApart(unix.Setns)
}

// listenApart makes the network on a thread of its own. If setns fails to bring that back to the agent's network, it ends with its
// goroutine, and takes nobody else's work along.
func listenApart(setns func(fd, kind int) error) (l net.Listener, space *os.File, err error) {
	var away sync.WaitGroup
	away.Go(func() { l, space, err = visit(setns) }) // ends when the listener is there
	away.Wait()
	return l, space, err
}

// visit is listenApart on the goroutine whose thread goes there.
func visit(setns func(fd, kind int) error) (net.Listener, *os.File, error) {
	runtime.LockOSThread() // until it is back: a locked thread ends with its goroutine
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, nil, fmt.Errorf("opening the agent's network: %w", err)
	}
	defer home.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, nil, fmt.Errorf("making a network: %w", err)
	}
	l, space, err := listenHere()
	if back := setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		if l != nil {
			err = errors.Join(err, l.Close(), space.Close())
		}
		return nil, nil, errors.Join(err, fmt.Errorf("leaving git's network: %w", back))
	}
	runtime.UnlockOSThread()
	return l, space, err
}

// listenHere listens in the network of the calling thread.
func listenHere() (net.Listener, *os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return nil, nil, err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return nil, nil, fmt.Errorf("setting up the loopback interface: %w", err)
	}
	space, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, nil, errors.Join(err, space.Close())
	}
	return l, space, nil
}
