package bench

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// spent is CPU time in seconds, since the processes began.
type spent struct {
	agent   float64 // the agents' own
	ended   float64 // of the supervisors that they have waited for, and of what ran under them
	clients float64 // this process
}

// spent reads the CPU time until now. Supervisors that still run are not in it, so cycles have to end first.
func (b *bench) spent() (s spent) {
	for _, a := range append([]*exec.Cmd{b.agent}, b.others...) {
		own, children := cpuTimes(a.Process.Pid)
		s.agent, s.ended = s.agent+own, s.ended+children
	}
	s.clients, _ = cpuTimes(os.Getpid())
	return s
}

// reportSpent tells what n repetitions cost. The figure holds however busy the machine is with other things.
func (b *bench) reportSpent(before spent, n int64) {
	now := b.spent()
	each := 1e3 / float64(n)
	b.report("CPU a cycle, all", (now.agent+now.ended+now.clients-before.agent-before.ended-before.clients)*each, "ms", "≤ 12", "")
	b.report("CPU a cycle, agent", (now.agent-before.agent)*each, "ms", "", "")
	b.report("CPU a cycle, supervisors and commands", (now.ended-before.ended)*each, "ms", "", "")
	b.report("CPU a cycle, clients", (now.clients-before.clients)*each, "ms", "", "")
	b.report("agent's memory after the cycles", memoryMB(b.agent.Process.Pid, "VmRSS"), "MB", "", "")
}

// cpuTimes are a process's own CPU time and that of the children it has waited for, in seconds.
func cpuTimes(pid int) (own, children float64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// A command's name may contain blanks and parentheses: the fields begin after the last parenthesis (proc(5)).
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 15 {
		return 0, 0
	}
	// proc(5) counts fields from 1; utime is the 14th, and here the state, its 3rd, has the index 0.
	var ticks [4]float64 // utime, stime, cutime, cstime
	for i := range ticks {
		ticks[i], _ = strconv.ParseFloat(fields[11+i], 64)
	}
	return (ticks[0] + ticks[1]) / 100, (ticks[2] + ticks[3]) / 100 // USER_HZ
}
