package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// idle measures what waiting costs: 25 warm runners, then 50 raw tasks.
func (b *bench) idle(ctx context.Context) error {
	if err := b.environment(ctx, "bench", 25); err != nil {
		return err
	}
	cpu := b.cpuOver(ctx, 10*time.Second)
	b.report("CPU of 25 warm runners", cpu, "% of a core", "≤ 0.5", "55 with 20 sessions")
	pids := b.supervisors(ctx)
	b.report("private memory per idle sandbox", privateMB(pids), "MB", "≤ 1.2", "")
	if err := b.register(ctx, sleepers("idle", 50)); err != nil {
		return err
	}
	if err := b.await(ctx, "idle", func(s drover.TaskGroupSummary) bool { return s.Running == 50 }); err != nil {
		return err
	}
	cpu = b.cpuOver(ctx, 10*time.Second)
	b.report("CPU of 50 idle raw_exec tasks and 25 warm runners", cpu, "% of a core", "≤ 0.5", "Nomad 20")
	b.report("private memory per supervisor", privateMB(b.supervisors(ctx)), "MB", "≤ 1", "Nomad 37 a task")
	return nil
}

// crowd measures what many waiting tasks cost, the agent's part of it included.
func (b *bench) crowd(ctx context.Context) error {
	n := b.n(500)
	before := privateMB([]int{b.agent.Process.Pid})
	if err := b.register(ctx, sleepers("crowd", n)); err != nil {
		return err
	}
	if err := b.await(ctx, "crowd", func(s drover.TaskGroupSummary) bool { return s.Running == n }); err != nil {
		return err
	}
	clock.Sleep(ctx, clock.Wall{}, 10*time.Second) // its deployment ends, health is reported
	b.report(fmt.Sprintf("idle %d raw_exec: CPU of agent and supervisors", n), b.cpuOver(ctx, 20*time.Second), "% of a core", "≤ 2",
		"Nomad 20 with 50")
	pids := b.supervisors(ctx)
	// privateMB is a mean: times the number of processes it is what all of them have.
	all := privateMB(pids)*float64(len(pids)) + privateMB([]int{b.agent.Process.Pid}) - before
	b.report(fmt.Sprintf("idle %d raw_exec: private memory a task, agent's growth included", n), all/float64(n), "MB", "≤ 1", "Nomad 37")
	return nil
}

// cpuOver is the CPU that the agent and all its supervisors use over d, in percent of a core.
func (b *bench) cpuOver(ctx context.Context, d time.Duration) float64 {
	sum := func() (t float64) {
		for _, pid := range append(b.supervisors(ctx), b.agent.Process.Pid) {
			t += cpuSeconds(pid)
		}
		return t
	}
	clock.Sleep(ctx, clock.Wall{}, 2*time.Second) // what just started calms down
	before, begin := sum(), b.now()
	clock.Sleep(ctx, clock.Wall{}, d)
	return 100 * (sum() - before) / b.now().Sub(begin).Seconds()
}

// supervisors lists the drover-init processes that run from this bench's data folder.
func (b *bench) supervisors(ctx context.Context) []int {
	// pgrep finds candidates only, also of other agents on the machine; each is checked below.
	out, err := exec.CommandContext(ctx, "pgrep", "-f", "drover-init").Output()
	if err != nil {
		return nil
	}
	// The agent's data folder distinguishes this bench's supervisors from those of other agents on the machine.
	data := b.agent.Args[4]
	var pids []int
	for _, f := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", f, "cmdline"))
		if err == nil && (strings.Contains(string(cmdline), data) || inherits(pid, b.agent.Process.Pid)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inherits reports whether pid's parent is the given process.
func inherits(pid, parent int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 1 && fields[1] == strconv.Itoa(parent)
}

// cpuSeconds is the process's own CPU time since it began, in seconds; 0 if it has ended.
func cpuSeconds(pid int) float64 {
	own, _ := cpuTimes(pid)
	return own
}

// privateMB is the mean private memory of the processes, file-backed pages included once they are private.
func privateMB(pids []int) float64 {
	var kb float64
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) >= 2 && (f[0] == "Private_Dirty:" || f[0] == "Private_Clean:") {
				n, _ := strconv.ParseFloat(f[1], 64)
				kb += n
			}
		}
	}
	return kb / 1000 / float64(max(1, len(pids)))
}
