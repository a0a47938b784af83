package forked

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Unmount unmounts what nobody uses. It waits for children that have a file there from before they ran their own program: the kernel
// calls the mount busy for as long. Errors: EBUSY, for what is used after that too; those of umount2(2).
func Unmount(path string, flags int) error {
	err := unix.Unmount(path, flags)
	for pause := 20 * time.Microsecond; errors.Is(err, unix.EBUSY) && pause < patience/2; pause *= 2 {
		time.Sleep(pause) //nolint:forbidigo // the kernel signals nobody, and a child needs no virtual time
		err = unix.Unmount(path, flags)
	}
	return err
}
