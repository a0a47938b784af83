package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// TrapPoints is how many points a trap can be set at, from 1 on: the simulation knows what they are.
const TrapPoints = 4

// Random draws a scenario.
func Random(seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, 0xd10fe2))
	s := Scenario{Seed: seed, Nodes: 2 + rng.IntN(4), Span: time.Duration(2+rng.IntN(5)) * time.Minute}
	g := generator{rng, s.Nodes, 1}
	for range 20 + rng.IntN(50) {
		step := g.draw(kinds())
		step.At = time.Duration(rng.Int64N(int64(s.Span))).Truncate(time.Millisecond)
		s.Steps = append(s.Steps, step)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return s
}

// generator draws the arguments of steps. Its draws are part of a seed's meaning: another order makes other scenarios.
type generator struct {
	rng     *rand.Rand
	nodes   int
	servers int
}

// pick draws one of the words.
func (g generator) pick(list ...string) string { return list[g.rng.IntN(len(list))] }

// kv draws an option between low and high, both included.
func (g generator) kv(k string, low, high int) string {
	return fmt.Sprintf("%s=%d", k, low+g.rng.IntN(high-low+1))
}

// node draws the name of a node.
func (g generator) node() string { return fmt.Sprintf("n%d", g.rng.IntN(g.nodes)) }

// secs draws a duration of whole seconds, both ends included.
func (g generator) secs(low, high int) string {
	return strconv.Itoa(low+g.rng.IntN(high-low+1)) + "s"
}

// kind is a kind of step that is drawn, as often as its weight says.
type kind struct {
	weight int
	draw   func(g generator) Step
	alone  bool // a fault of a server that is alone
}

// kinds are half clients' steps, a quarter operators', a quarter faults.
func kinds() []kind {
	return []kind{
		{weight: 4, draw: generator.service},
		{weight: 2, draw: func(g generator) Step {
			return step("batch", "batch"+g.job(), g.kv("count", 1, 6), g.kv("cpu", 100, 600), g.kv("run", 1, 60), g.kv("fail", 0, 40))
		}},
		{weight: 1, draw: func(g generator) Step {
			return step(g.pick("system", "sysbatch"), "sys"+g.pick("1", "2"), g.kv("cpu", 50, 300), g.kv("run", 0, 0), g.kv("v", 1, 2))
		}},
		{weight: 2, draw: func(g generator) Step {
			return step("env", g.env(), g.kv("size", 0, 8), g.kv("cpu", 50, 200), g.kv("max", 0, 12))
		}},
		{weight: 4, draw: func(g generator) Step {
			return step("claim", g.env(), g.kv("times", 1, 4), g.kv("idle", 0, 60), g.kv("wait", 0, 20))
		}},
		{weight: 2, draw: func(g generator) Step { return step("release", g.kv("times", 1, 4)) }},
		{weight: 1, draw: func(g generator) Step { return step("scale", g.job(), g.kv("count", 0, 6)) }},
		{weight: 1, draw: func(g generator) Step {
			return step("stop", g.pick(g.job(), "batch"+g.job(), "sys1"), g.kv("purge", 0, 1))
		}},
		{weight: 1, draw: func(g generator) Step { return step("delenv", g.env()) }},
		{weight: 1, draw: func(g generator) Step { return step("stopalloc", g.kv("times", 1, 3)) }},
		{weight: 1, draw: func(g generator) Step { return step("drain", g.node(), g.kv("deadline", -1, 60)) }},
		{weight: 1, draw: func(g generator) Step { return step("undrain", g.node()) }},
		{weight: 1, draw: func(g generator) Step { return step(g.pick("ineligible", "eligible"), g.node()) }},
		{weight: 1, draw: func(g generator) Step {
			return step(g.pick("snapshot", "gc", "preempt", "evaluate", "purgenode"), g.node())
		}},
		{weight: 2, draw: func(g generator) Step { return step("crash", g.secs(0, 30)) }, alone: true},
		{weight: 2, draw: func(g generator) Step { return step("trap", g.secs(0, 10), g.kv("point", 1, TrapPoints)) }, alone: true},
		{weight: 1, draw: func(g generator) Step { return step("lose", g.secs(0, 20)) }, alone: true},
		{weight: 1, draw: func(g generator) Step { return step(g.pick("logfull", "lossy", "stuck"), g.secs(5, 30)) }, alone: true},
		{weight: 1, draw: func(g generator) Step { return step(g.pick("kill", "reboot", "wipe"), g.node(), g.kv("for", 0, 60)) }},
		{weight: 1, draw: func(g generator) Step { return step(g.pick("kill", "reboot"), g.node(), g.kv("for", 0, 60)) }},
		{weight: 1, draw: func(g generator) Step { return step("cut", g.node(), g.kv("for", 1, 90)) }},
		{weight: 1, draw: func(g generator) Step { return step(g.pick("slow", "full"), g.node(), g.kv("for", 10, 90)) }},
		{weight: 1, draw: func(g generator) Step { return step(g.pick("skew", "oom"), g.node(), g.kv("seconds", -30, 30)) }},
	}
}

func step(verb string, args ...string) Step { return Step{Verb: verb, Args: args} }

func (g generator) job() string { return g.pick("a", "b", "c") }
func (g generator) env() string { return g.pick("x", "y") }

// draw draws one of the kinds.
func (g generator) draw(all []kind) Step {
	total := 0
	for _, k := range all {
		total += k.weight
	}
	n := g.rng.IntN(total)
	for _, k := range all {
		if n -= k.weight; n < 0 {
			return k.draw(g)
		}
	}
	return Step{} // not reached: the weights are the total
}

// service draws a service with some of the options that jobOf knows.
func (g generator) service() Step {
	args := []string{g.job(), g.kv("count", 0, 6), g.kv("cpu", 100, 700), g.kv("v", 1, 3)}
	for _, opt := range []string{
		g.kv("fail", 10, 60), g.kv("startfail", 10, 40), g.kv("ports", 1, 1), g.kv("static", 8080, 8081), g.kv("update", 1, 2),
		g.kv("tasks", 2, 2), g.kv("canary", 1, 1), g.kv("distinct", 1, 1), g.kv("spread", 1, 1), g.kv("priority", 20, 90),
		g.kv("away", 20, 200), g.kv("stay", 1, 1),
	} {
		if g.rng.IntN(5) == 0 {
			args = append(args, opt)
		}
	}
	return step("service", args...)
}
