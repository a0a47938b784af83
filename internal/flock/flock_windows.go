package flock

import (
	"os"

	"golang.org/x/sys/windows"
)

// The whole file is one range.
const (
	lowest  = ^uint32(0)
	highest = ^uint32(0)
)

func lock(f *os.File, alone, wait bool) error {
	var how uint32
	if alone {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), how, 0, lowest, highest, &windows.Overlapped{})
}

func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, lowest, highest, &windows.Overlapped{})
}
