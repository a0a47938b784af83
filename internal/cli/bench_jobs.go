package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/internal/clock"
)

func newAPI(address string) *api { return &api{http: &http.Client{}, address: address} }

func benchJob(id, kind, driver string, count int, config map[string]any) *drover.Job {
	return &drover.Job{ID: id, Type: kind, TaskGroups: []*drover.TaskGroup{{Name: "g", Count: &count, Tasks: []*drover.Task{{
		Name: "t", Driver: driver, Config: config, Resources: &drover.Resources{CPU: 1, MemoryMB: 10},
	}}}}}
}

func (b *bench) register(ctx context.Context, j *drover.Job) error {
	_, err := b.api.call(ctx, http.MethodPut, "/v1/jobs", nil, map[string]any{"Job": j}, nil)
	return err
}

// await blocks until the summary of the job's group satisfies done, by blocking queries.
func (b *bench) await(ctx context.Context, id string, done func(drover.TaskGroupSummary) bool) error {
	index := "0"
	for {
		var s drover.JobSummary
		h, err := b.api.call(ctx, http.MethodGet, "/v1/job/"+id+"/summary", url.Values{"index": {index}, "wait": {"30s"}}, nil, &s)
		if err != nil {
			return err
		}
		if done(s.Summary["g"]) {
			return nil
		}
		index = h.Get("X-Nomad-Index")
	}
}

// jobs measures registering to running, and batch throughput.
func (b *bench) jobs(ctx context.Context) error {
	var times []time.Duration
	for i := range b.n(50) {
		id := fmt.Sprintf("one-%d", i)
		begin := b.now()
		if err := b.register(ctx, benchJob(id, "service", "raw_exec", 1, map[string]any{"command": "/bin/sleep", "args": []string{"100"}})); err != nil {
			return err
		}
		if err := b.await(ctx, id, func(s drover.TaskGroupSummary) bool { return s.Running == 1 }); err != nil {
			return err
		}
		times = append(times, b.now().Sub(begin))
		if _, err := b.api.call(ctx, http.MethodDelete, "/v1/job/"+id, url.Values{"purge": {"true"}}, nil, nil); err != nil {
			return err
		}
	}
	b.report("register a job to running p50 (raw_exec)", percentile(times, 0.5), "ms", "≤ 20", "Nomad 1,030")
	for _, t := range []struct {
		name, driver, goal, peer string
		count                    int
		config                   map[string]any
	}{
		{"batch tasks, raw_exec", "raw_exec", "≥ 500 (first step 200)", "Nomad 8.5", 1000, map[string]any{"command": "/bin/true"}},
		{"batch tasks, fake", "mock_driver", "≥ 5,000 (first step 2,000)", "Nomad 21", 5000, map[string]any{"run_for": "0s"}},
	} {
		n := b.n(t.count)
		id := "batch-" + t.driver
		begin := b.now()
		if err := b.register(ctx, benchJob(id, "batch", t.driver, n, t.config)); err != nil {
			return err
		}
		if err := b.await(ctx, id, func(s drover.TaskGroupSummary) bool { return s.Complete+s.Failed == n }); err != nil {
			return err
		}
		b.report(t.name, float64(n)/b.now().Sub(begin).Seconds(), "a second", t.goal, t.peer)
	}
	return nil
}

// idle measures what waiting costs: 25 warm runners, then 50 raw tasks.
func (b *bench) idle(ctx context.Context) error {
	if err := b.environment(ctx, "bench", 25); err != nil {
		return err
	}
	cpu := b.cpuOver(ctx, 10*time.Second)
	b.report("CPU of 25 warm runners", cpu, "% of a core", "≤ 0.5", "55 with 20 sessions")
	pids := b.supervisors(ctx)
	b.report("private memory per idle sandbox", privateMB(pids), "MB", "≤ 1.2", "")
	if err := b.register(ctx, benchJob("idle", "service", "raw_exec", 50, map[string]any{"command": "/bin/sleep", "args": []string{"1000"}})); err != nil {
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
	out, err := exec.CommandContext(ctx, "pgrep", "-f", "drover-init").Output()
	if err != nil {
		return nil
	}
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

func cpuSeconds(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // USER_HZ
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
