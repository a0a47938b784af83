package forked

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds how long Close waits for other processes that have the file open for writing: a child needs microseconds, and
// a process that keeps the file open on purpose is not waited for.
const patience = 100 * time.Millisecond

// reader opens a file a second time, for reading; nil if that is not possible.
func reader(f *os.File) *os.File {
	r, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return nil
	}
	return r
}

// awaitWriters waits until nobody has the file open for writing: only then does the kernel give a lease for reading. Where
// there are no leases (a file of another owner, a file system without them) it does not wait.
func awaitWriters(r *os.File) {
	for pause := 20 * time.Microsecond; pause < patience/2; pause *= 2 { // the pauses sum up to less than patience
		_, err := unix.FcntlInt(r.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(r.Fd(), unix.F_SETLEASE, unix.F_UNLCK) // closing it would give it back, too
			return
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
		time.Sleep(pause) //nolint:forbidigo // the kernel signals nobody, and a child needs no virtual time
	}
}
