package rollouts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/sim/scenario"
)

// jobOf makes the job that a step asks for. Another v is other work, another prio the same.
func jobOf(id string, o scenario.Options) *drover.Job {
	kind := drover.JobTypeService
	if o["everywhere"] > 0 {
		kind = drover.JobTypeSystem
	}
	j := scenario.JobOf(kind, id, o)
	g := j.TaskGroups[0]
	g.Update = &drover.UpdateStrategy{
		MaxParallel: new(o.Or("par", 1)), Canary: o["canary"], AutoPromote: o["auto"] > 0 && o["canary"] > 0, AutoRevert: o["back"] > 0,
		MinHealthyTime: new(time.Duration(o.Or("well", 3)) * time.Second), HealthyDeadline: 30 * time.Second,
		ProgressDeadline: new(time.Duration(o.Or("deadline", 60)) * time.Second), HealthCheck: "task_states",
	}
	if kind == drover.JobTypeService {
		g.ReschedulePolicy = &drover.ReschedulePolicy{
			Unlimited: new(o["tries"] == 0), Attempts: new(o["tries"] / 2), Interval: new(time.Hour), Delay: new(5 * time.Second),
			DelayFunction: "exponential", MaxDelay: new(30 * time.Second),
		}
		if o["tries"] == 0 {
			g.ReschedulePolicy.Attempts, g.ReschedulePolicy.Interval = new(0), new(time.Duration(0))
		}
	}
	for _, t := range g.Tasks {
		t.Config["late"], t.Config["broken"] = o["late"], o["broken"]
		if o["brief"] > 0 {
			t.RestartPolicy.Attempts = new(0)
		}
	}
	if o["two"] > 0 {
		second := new(*g)
		second.Name = "h"
		j.TaskGroups = append(j.TaskGroups, second)
	}
	return j
}

// Random draws a history.
func Random(seed uint64) scenario.Scenario {
	d := drawing{rand.New(rand.NewPCG(seed, 0x2011007))}
	s := scenario.Scenario{Seed: seed, Nodes: 2 + d.IntN(3), Span: time.Duration(2+d.IntN(4)) * time.Minute}
	at := time.Duration(0)
	for at < s.Span {
		// Histories come in bursts: what matters is what happens while something is under way.
		at += []time.Duration{time.Second, 4 * time.Second, 20 * time.Second}[d.IntN(3)] + time.Duration(d.IntN(4000))*time.Millisecond
		step := d.step(s.Nodes)
		step.At = at
		s.Steps = append(s.Steps, step)
	}
	first := d.version("a")
	first.At = 500 * time.Millisecond
	s.Steps = slices.Insert(s.Steps, 0, first)
	return s
}

// drawing draws steps. Its draws are part of a seed's meaning: another order makes other histories.
type drawing struct{ *rand.Rand }

func step(verb string, args ...string) scenario.Step { return scenario.Step{Verb: verb, Args: args} }

// job names one of the jobs; most is done to one of them.
func (d drawing) job() string { return []string{"a", "a", "b"}[d.IntN(3)] }

// option draws a number between low and high, both included.
func (d drawing) option(name string, low, high int) string {
	return fmt.Sprintf("%s=%d", name, low+d.IntN(high-low+1))
}

// version registers a version of a job.
func (d drawing) version(job string) scenario.Step {
	args := []string{job, d.option("v", 1, 5), d.option("count", 1, 6), d.option("par", 1, 3)}
	for _, o := range []struct {
		text string
		of   int // one of so many versions has it
	}{
		{d.option("cpu", 200, 900), 3},
		{d.option("canary", 1, 2), 3},
		{"auto=1", 2},
		{"back=1", 3},
		{"broken=1", 4},
		{d.option("late", 2, 30), 4},
		{d.option("fail", 10, 60), 4},
		{d.option("startfail", 10, 40), 6},
		{d.option("tries", 1, 5), 4},
		{"brief=1", 3},
		{d.option("deadline", 0, 0), 8},
		{d.option("priority", 30, 70), 3},
		{"tasks=2", 6},
		{"two=1", 8},
		{"ports=1", 6},
		{"distinct=1", 10},
		{d.option("well", 1, 12), 3},
	} {
		if d.IntN(o.of) == 0 {
			args = append(args, o.text)
		}
	}
	if job == "b" && d.IntN(4) == 0 {
		return step("roll", append([]string{"s", "everywhere=1"}, args[1:]...)...)
	}
	return step("roll", args...)
}

// step draws a step.
func (d drawing) step(nodes int) scenario.Step {
	node, seconds := "n"+strconv.Itoa(d.IntN(nodes)), strconv.Itoa(d.IntN(20))+"s"
	return []func() scenario.Step{
		func() scenario.Step { return d.version(d.job()) },
		func() scenario.Step { return d.version(d.job()) },
		func() scenario.Step { return d.version(d.job()) },
		func() scenario.Step { return d.version(d.job()) },
		func() scenario.Step { return step("scale", d.job(), d.option("count", 0, 6)) },
		func() scenario.Step { return step("scale", d.job(), d.option("count", 1, 6)) },
		func() scenario.Step { return step("promote", d.job()) },
		func() scenario.Step { return step("promote", d.job()) },
		func() scenario.Step { return step("revert", d.job(), d.option("back", 1, 2)) },
		func() scenario.Step { return step("revert", d.job(), d.option("back", 1, 2)) },
		func() scenario.Step { return step("hold", d.job()) },
		func() scenario.Step { return step("resume", d.job()) },
		func() scenario.Step { return step("fail", d.job()) },
		func() scenario.Step { return step("say", d.job(), d.option("well", 0, 1)) },
		func() scenario.Step { return step("stop", d.job(), d.option("purge", 0, 1)) },
		func() scenario.Step { return step("stopalloc", d.option("times", 1, 3)) },
		func() scenario.Step { return step("evaluate", "all") },
		func() scenario.Step { return step("drain", node, d.option("deadline", -1, 60)) },
		func() scenario.Step { return step("undrain", node) },
		func() scenario.Step { return step([]string{"ineligible", "eligible", "eligible"}[d.IntN(3)], node) },
		func() scenario.Step { return step([]string{"kill", "reboot"}[d.IntN(2)], node, d.option("for", 0, 60)) },
		func() scenario.Step { return step("cut", node, d.option("for", 1, 90)) },
		func() scenario.Step { return step([]string{"slow", "full"}[d.IntN(2)], node, d.option("for", 10, 60)) },
		func() scenario.Step { return step("oom", node) },
		func() scenario.Step { return step([]string{"crash", "lose", "lossy", "stuck"}[d.IntN(4)], seconds) },
		func() scenario.Step { return step([]string{"gc", "snapshot", "preempt"}[d.IntN(3)], node) },
	}[d.IntN(26)]()
}
