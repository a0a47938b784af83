package cgroup

import (
	"os"
	"runtime"
)

// ownGroups reads which groups the agent is in: one line for each tree, as in /proc/PID/cgroup. It reads the groups of the
// calling thread. /proc/self would tell those of the process's first thread. That one may just now be in the group of a
// supervisor that it forks (see JoinInit). Such a thread is locked to the goroutine that forks, so it is never this one.
func ownGroups() ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return os.ReadFile("/proc/thread-self/cgroup")
}
