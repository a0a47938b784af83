package loopback

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dataFlag is the argument by which an agent is known as a machine's: no two have the same.
const dataFlag = "--data-dir="

// process is a row of /proc.
type process struct {
	pid, parent int
	born        uint64 // when it started, in clock ticks since the boot; an exec doesn't change it
	zombie      bool
}

// pids returns what runs on this machine.
func pids() (list []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil // nothing runs that we could see
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // then some are missing, and are found the next time
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// look reads a process's row. A child of ours that is dead is reaped.
func look(pid int) (p process, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // the name before it may hold anything
	if len(fields) < 20 {
		return p, false
	}
	p.pid, p.zombie = pid, fields[0] == "Z" || fields[0] == "X"
	p.parent, _ = strconv.Atoi(fields[1])
	p.born, _ = strconv.ParseUint(fields[19], 10, 64) // proc(5): starttime
	return p, true
}

// reap takes a dead child's status, if the process is one.
func reap(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) } // others' children are theirs to reap

// lives reports whether the process is alive and no other that was given its number. It does not ask for its arguments:
// the kernel shows none for a moment after an exec, and a new machine would be taken for a dead one.
func lives(pid int, born uint64) bool {
	p, ok := look(pid)
	if ok && p.born == born && p.zombie {
		reap(pid)
	}
	return ok && p.born == born && !p.zombie
}

// saysAgent reports whether the process was started as that agent; a dead one has no arguments any more.
func saysAgent(pid int, data string) bool {
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // it just ended
	return strings.Contains(string(line), "\x00"+dataFlag+data+"\x00")
}

// agentOf finds the agent with the data folder; no PID = none runs.
func agentOf(data string) (pid int, born uint64) {
	for _, pid := range pids() {
		if saysAgent(pid, data) {
			if p, ok := look(pid); ok {
				return pid, p.born
			}
		}
	}
	return 0, 0
}

// members returns what lives and belongs to the machine: its agent, and programs that the agent put into its folder
// (the supervisors of tasks). So do what is in its control groups, and all that these started.
func members(r *record, data string) (alive []int) {
	mine := map[int]bool{}
	if lives(r.PID, r.Born) {
		mine[r.PID] = true
	}
	for _, pid := range inGroups(groupOf(r.ID)) {
		mine[pid] = true
	}
	var list []process
	for _, pid := range pids() {
		p, ok := look(pid)
		if !ok {
			continue
		}
		list = append(list, p)
		exe, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe") // a kernel thread, or it just ended
		if strings.HasPrefix(exe, data+string(filepath.Separator)) || exe != "" && saysAgent(pid, data) {
			mine[pid] = true
		}
	}
	for grew := true; grew; {
		grew = false
		for _, p := range list {
			if mine[p.parent] && !mine[p.pid] {
				mine[p.pid], grew = true, true
			}
		}
	}
	for _, p := range list {
		if mine[p.pid] && p.zombie {
			reap(p.pid)
		} else if mine[p.pid] && p.pid > 1 && p.pid != os.Getpid() {
			alive = append(alive, p.pid)
		}
	}
	return alive
}
