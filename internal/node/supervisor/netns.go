package supervisor

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// withinNetNS calls f, which forks, from a thread that is in the network namespace at path; "" = in the agent's. The
// namespace is joined with the agent's rights, before the child has given any up.
func withinNetNS(path string, f func() error) error {
	if path == "" {
		return f()
	}
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("opening the agent's network namespace: %w", err)
	}
	defer home.Close()
	there, err := os.Open(path)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("opening the group's network namespace: %w", err)
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("joining the group's network namespace: %w", err)
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, fmt.Errorf("leaving the group's network namespace: %w", back)) // the thread ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}
