package forked

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds how long Close waits for other processes that have the file open for writing. A child needs microseconds, and
// a process that keeps the file open on purpose is not waited for.
const patience = 100 * time.Millisecond

// reader opens a file a second time, for reading; -1 if that is not possible. It is a bare descriptor: an os.File of it would
// cost five calls more, at each file that is written.
func reader(f *os.File) int {
	fd := -1
	conn, err := f.SyscallConn()
	if err != nil {
		return fd
	}
	_ = conn.Control(func(of uintptr) { // fails for a closed file alone, of which there is no other descriptor either
		fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(int(of)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1
	}
	return fd
}

// awaitWriters waits until nobody has the file open for writing, and closes the descriptor: only then does the kernel give a lease
// for reading, which goes with the descriptor. Where there are no leases (a file of another owner, a file system without them) it does
// not wait.
func awaitWriters(fd int) {
	if fd < 0 {
		return
	}
	defer unix.Close(fd)
	for pause := 20 * time.Microsecond; pause < patience/2; pause *= 2 { // the pauses sum up to less than patience
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); !errors.Is(err, unix.EAGAIN) {
			return
		}
		time.Sleep(pause) //nolint:forbidigo // the kernel signals nobody, and a child needs no virtual time
	}
}
