package forked

import (
	"os"
	"syscall"
)

// Close closes a file that was written and may be executed next. It waits for children that have it from before they ran their
// own program, because the kernel refuses to execute what any process has open for writing ("text file busy"). A child between fork and
// exec holds the fork lock; one that just ran its program may still be closing what it has from its parent.
func Close(f *os.File) error {
	r := reader(f)
	err := closeLocked(f)
	awaitWriters(r)
	return err
}

func closeLocked(f *os.File) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return f.Close()
}
