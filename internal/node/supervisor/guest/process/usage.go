package process

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const tick = 10 * time.Millisecond // of /proc/<pid>/stat

// CPUTime returns the user and system time that a process and its reaped children have used; false when there is no such
// process.
func CPUTime(pid int) (time.Duration, bool) {
	p, ok := readProc(pid)
	return time.Duration(p.ticks) * tick, ok
}

// PrivateBytes returns what a process has of its own in memory: pages that it shares with files are not counted. ok is
// false when the kernel does not tell.
func PrivateBytes(pid int) (n int64, ok bool) {
	var buf [128]byte
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/statm", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer syscall.Close(fd) //nolint:errcheck // it was only read
	k, err := syscall.Read(fd, buf[:])
	f := strings.Fields(string(buf[:max(k, 0)]))
	if err != nil || len(f) < 3 {
		return 0, false
	}
	resident, err1 := strconv.ParseInt(f[1], 10, 64)
	shared, err2 := strconv.ParseInt(f[2], 10, 64)
	return max(resident-shared, 0) * int64(os.Getpagesize()), err1 == nil && err2 == nil
}

// CloseAll closes descriptors that nobody took.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = syscall.Close(fd)
	}
}
