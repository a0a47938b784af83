package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// proc is a line of the process table.
type proc struct {
	pid, ppid, pgrp, sid int
	state                byte
	ticks                int64 // user + system time, also of reaped children; 1/100 s
	threads              int
	settled              bool // its environment can be read: not so right after an exec, for milliseconds with the CPUs busy
}

// ended reports whether the first thread has ended. The process lives on while it has others.
func (p proc) ended() bool { return p.state == 'Z' || p.state == 'X' }

// alive reports whether any thread of the process runs.
func (p proc) alive() bool { return !p.ended() || p.threads > 1 }

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

// readProc reads one line of the table; false if the process is gone.
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
	const threads, envEnd = 17, 48 // proc(5): num_threads and env_end, counted from state
	if len(f) > envEnd {
		p.threads, _ = strconv.Atoi(f[threads])
		p.settled = f[envEnd] != "0"
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

// parsePids reads numbers between spaces or newlines, as the kernel's lists of processes are.
func parsePids(b []byte) (pids []int) {
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// environ reads what a process was started with, between zeros. A process may hide it, and may be one that we cannot read.
// known is false for one that is just starting a program: it has to be asked again.
func environ(p proc) (env []byte, known bool) {
	dir := "/proc/" + strconv.Itoa(p.pid)
	read := func(path string) (some bool, err error) {
		b, err := os.ReadFile(path)
		env = append(append([]byte{0}, b...), 0)
		return len(b) > 0, err
	}
	if p.ended() { // its other threads have it
		others, _ := filepath.Glob(dir + "/task/*/environ") // the pattern is good
		for _, path := range others {
			if some, _ := read(path); some {
				break
			}
		}
		return env, true
	}
	if some, err := read(dir + "/environ"); some || err != nil {
		return env, true
	}
	if now, there := readProc(p.pid); there && !now.settled {
		return env, false
	}
	_, _ = read(dir + "/environ") // it may just have got one
	return env, true
}

// hasMark reports whether an environment has the mark.
func hasMark(env []byte, mark string) bool { return bytes.Contains(env, []byte("\x00"+mark+"\x00")) }

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

// MarkKey is the variable that marks what an execution started, on machines without control groups.
const MarkKey = "DROVER_EXECUTION"

// hasAnyMark reports whether an execution, no matter which, started the process.
func hasAnyMark(env []byte) bool { return bytes.Contains(env, []byte("\x00"+MarkKey+"=")) }
