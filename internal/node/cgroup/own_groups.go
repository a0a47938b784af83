package cgroup

import (
	"os"
	"runtime"
)

// ownGroups reads which groups the agent is in, a line a tree. It asks for the calling thread: /proc/self tells the first
// one's, which may be away, forking a supervisor (JoinInit), and whoever is away is locked to that work.
func ownGroups() ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return os.ReadFile("/proc/thread-self/cgroup")
}
