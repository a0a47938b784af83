package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Exclusive waits for the lock that nobody shares.
func Exclusive(f *os.File) error { return flock(f, unix.LOCK_EX) }

// Shared waits for a lock that others may share.
func Shared(f *os.File) error { return flock(f, unix.LOCK_SH) }

// TryExclusive takes the lock that nobody shares, and reports whether it could be had at once.
func TryExclusive(f *os.File) bool { return flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil }

// TryShared takes a lock that others may share, and reports whether it could be had at once.
func TryShared(f *os.File) bool { return flock(f, unix.LOCK_SH|unix.LOCK_NB) == nil }

// Close gives the lock up and closes the file. To close the file alone would leave the lock to every child that another
// goroutine has just forked, until that child runs its own program.
func Close(f *os.File) error {
	return errors.Join(flock(f, unix.LOCK_UN), f.Close())
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
