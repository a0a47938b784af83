package spawn

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// bare forks on a thread whose mount namespace holds one empty directory that cannot be written to.
type bare struct{ work chan func() }

// theBare is the process's, made by the first who needs it. Supervisors, which link this too, spend nothing on it.
var theBare struct {
	once sync.Once
	bare *bare
	err  error
}

func getBare() (*bare, error) {
	theBare.once.Do(func() { theBare.bare, theBare.err = newBare() })
	return theBare.bare, theBare.err
}

// StartBare is StartStaged in a mount namespace that holds only EmptyRoot. The child's own namespace is a copy of that one. A copy of the
// machine's would cost a mount for each of the machine's, and to let go of it a walk over all threads that there are.
func StartBare(s Stage) (child *Staged, err error) {
	b, err := getBare()
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	b.work <- func() {
		defer close(done)
		child, err = StartStaged(s)
	}
	<-done
	return child, err
}

// CanBare reports whether StartBare can work: it needs the rights of root.
func CanBare() bool {
	_, err := getBare()
	return err == nil
}

// EmptyRoot is the only directory of a bare child's root, and empty.
const EmptyRoot = "/tmp"

// newBare starts the thread.
func newBare() (*bare, error) {
	b := &bare{work: make(chan func())}
	result := make(chan error, 1)
	go b.run(result) // ends with the process
	if err := <-result; err != nil {
		return nil, fmt.Errorf("making an empty mount namespace: %w", err)
	}
	return b, nil
}

// run keeps its thread for good: the namespace and the working directory are the thread's own.
func (b *bare) run(result chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		go b.run(result) // what the process's first thread is in, others see
		runtime.UnlockOSThread()
		return
	}
	err := enterEmpty()
	result <- err
	if err != nil {
		return // the thread ends with the goroutine
	}
	for f := range b.work {
		f()
	}
}

// enterEmpty leaves the machine's mounts.
func enterEmpty() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	const flags, from = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "/tmp" // which every machine has
	for _, step := range []func() error{
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return unix.Mount("drover", from, "tmpfs", flags, "size=4k,nr_inodes=4,mode=0755") },
		func() error { return unix.Chdir(from) },
		func() error { return unix.Mkdir(EmptyRoot[1:], 0o755) },
		func() error { return unix.PivotRoot(".", ".") }, // the old root is now stacked on the new one
		func() error { return unix.Unmount(".", unix.MNT_DETACH) },
		func() error { return unix.Chdir("/") },
		func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, "") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
