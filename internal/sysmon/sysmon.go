package sysmon

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Slack is how many ns longer than it asked for the monitor may sleep; the kernel's default is 50,000. It bounds how long a
// system call that blocks may hold up others that wait for its processor.
const Slack = 1_000_000

// Relax lets this process's monitor sleep longer by up to Slack each time. It does its best: without CAP_SYS_NICE, in a
// process that was not started with that slack, everything stays as it was.
func Relax() {
	if own, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && own >= Slack {
		return // all threads have it from who started us
	}
	tid, ok := monitorThread()
	if !ok {
		return
	}
	fd, err := syscall.Open("/proc/"+tid+"/timerslack_ns", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = syscall.Write(fd, []byte(strconv.Itoa(Slack)))
	_ = syscall.Close(fd)
}

// monitorThread returns the id of the process's second thread: the first one that the runtime makes is the monitor.
func monitorThread() (tid string, ok bool) {
	fd, err := syscall.Open("/proc/self/task", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer syscall.Close(fd) //nolint:errcheck // it was only read
	var buf [512]byte
	n, err := syscall.ReadDirent(fd, buf[:])
	if err != nil {
		return "", false
	}
	_, _, threads := syscall.ParseDirent(buf[:n], -1, nil) // in the order of their beginnings
	if len(threads) < 2 {
		return "", false
	}
	_, err = strconv.Atoi(threads[1])
	return threads[1], err == nil
}
