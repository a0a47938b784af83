package initd

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// proc is a line of the process table.
type proc struct {
	pid, ppid, pgrp, sid int
	state                byte
	ticks                int64 // user + system time, also of reaped children; 1/100 s
}

func (p proc) alive() bool { return p.state != 'Z' && p.state != 'X' }

// processes reads the process table.
func processes() map[int]proc {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	table := make(map[int]proc, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			table[pid] = p
		}
	}
	return table
}

func readProc(pid int) (proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	i := bytes.LastIndexByte(b, ')') // the name may hold anything
	if i < 0 {
		return proc{}, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 15 {
		return proc{}, false
	}
	p := proc{pid: pid, state: f[0][0]}
	p.ppid, _ = strconv.Atoi(f[1])
	p.pgrp, _ = strconv.Atoi(f[2])
	p.sid, _ = strconv.Atoi(f[3])
	for _, s := range f[11:15] {
		n, _ := strconv.ParseInt(s, 10, 64)
		p.ticks += n
	}
	return p, true
}

// directChildren reads our children from the kernel's lists; ok is false where it has none.
func directChildren() (pids []int, ok bool) {
	d, err := os.Open("/proc/self/task")
	if err != nil {
		return nil, false
	}
	defer d.Close()
	threads, err := d.Readdirnames(-1)
	if err != nil {
		return nil, false
	}
	for _, t := range threads {
		b, err := os.ReadFile("/proc/self/task/" + t + "/children")
		if err != nil {
			if _, gone := os.Stat("/proc/self/task/" + t); gone != nil {
				continue
			}
			return nil, false
		}
		pids = append(pids, parsePids(b)...)
	}
	return pids, true
}

func parsePids(b []byte) (pids []int) {
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// hasMark reports whether a process was started with the mark in its environment. A process may hide it, and may be
// one that we cannot read.
func hasMark(pid int, mark string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, append(b, 0)...), []byte("\x00"+mark+"\x00"))
}

// readPids reads the members of a control group through an open cgroup.procs, opened anew: v1 shows who reads the same
// file again what it showed before, for a second at least.
func readPids(fd int) []int {
	if fresh, err := syscall.Open("/proc/self/fd/"+strconv.Itoa(fd), syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
		defer syscall.Close(fresh) //nolint:errcheck // it is only read
		fd = fresh
	}
	var all []byte
	buf := make([]byte, 4096)
	for {
		n, err := syscall.Pread(fd, buf, int64(len(all)))
		if n <= 0 || err != nil {
			return parsePids(all)
		}
		all = append(all, buf[:n]...)
	}
}

// markKey is the variable that marks what an execution started, on machines without control groups.
const markKey = "DROVER_EXECUTION"

func hasAnyMark(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, b...), []byte("\x00"+markKey+"="))
}
