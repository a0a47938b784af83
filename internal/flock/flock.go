package flock

import (
	"errors"
	"os"
)

// Exclusive waits for the lock that nobody shares.
func Exclusive(f *os.File) error { return lock(f, true, true) }

// Shared waits for a lock that others may share.
func Shared(f *os.File) error { return lock(f, false, true) }

// TryExclusive takes the lock that nobody shares, and reports whether it could be had at once.
func TryExclusive(f *os.File) bool { return lock(f, true, false) == nil }

// TryShared takes a lock that others may share, and reports whether it could be had at once.
func TryShared(f *os.File) bool { return lock(f, false, false) == nil }

// Close gives the lock up and closes the file. To close the file alone would leave the lock to every child that another
// goroutine has just forked, until that child runs its own program.
func Close(f *os.File) error {
	return errors.Join(unlock(f), f.Close())
}
