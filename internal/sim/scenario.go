package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// Scenario is what is done to the world: a text that people can read, change and keep.
//
//	seed 42
//	nodes 4
//	span 5m0s
//	12.5s service web count=3 cpu=300 ports=1
//	40s crash 10s
//
// Everything else is drawn from the seed.
type Scenario struct {
	Seed  uint64
	Nodes int
	Span  time.Duration // faults end then; from there on everything has to come to rest
	Steps []Step
}

// Step is one thing that a client, an operator or bad luck does.
type Step struct {
	At   time.Duration
	Verb string
	Args []string // names, then key=value
}

// String returns the scenario's text.
func (s Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nnodes %d\nspan %s\n", s.Seed, s.Nodes, s.Span)
	for _, step := range s.Steps {
		fmt.Fprintln(&b, step)
	}
	return b.String()
}

// String returns the step's line.
func (s Step) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", s.At, s.Verb, strings.Join(s.Args, " ")))
}

// Parse reads a scenario's text; # begins a comment. Errors: Invalid with the line.
func Parse(text string) (Scenario, error) {
	var s Scenario
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var err error
		switch {
		case len(f) < 2:
			err = drover.Errorf(drover.Invalid, "too short")
		case f[0] == "seed":
			s.Seed, err = strconv.ParseUint(f[1], 10, 64)
		case f[0] == "nodes":
			s.Nodes, err = strconv.Atoi(f[1])
		case f[0] == "span":
			s.Span, err = time.ParseDuration(f[1])
		default:
			step := Step{Verb: f[1], Args: f[2:]}
			step.At, err = time.ParseDuration(f[0])
			s.Steps = append(s.Steps, step)
		}
		if err != nil {
			return s, drover.Errorf(drover.Invalid, "line %d: %w", i+1, err)
		}
	}
	return s, nil
}

// Random draws a scenario.
func Random(seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, 0xd10fe2))
	s := Scenario{Seed: seed, Nodes: 2 + rng.IntN(4), Span: time.Duration(2+rng.IntN(5)) * time.Minute}
	g := generator{rng, s.Nodes}
	for range 20 + rng.IntN(50) {
		step := g.step()
		step.At = time.Duration(rng.Int64N(int64(s.Span))).Truncate(time.Millisecond)
		s.Steps = append(s.Steps, step)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return s
}

// generator draws the arguments of steps. Its draws are part of a seed's meaning: another order makes other scenarios.
type generator struct {
	rng   *rand.Rand
	nodes int
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
}

// kinds are half clients' steps, a quarter operators', a quarter faults.
func kinds() []kind {
	return []kind{
		{4, generator.service},
		{2, func(g generator) Step {
			return step("batch", "batch"+g.job(), g.kv("count", 1, 6), g.kv("cpu", 100, 600), g.kv("run", 1, 60), g.kv("fail", 0, 40))
		}},
		{1, func(g generator) Step {
			return step(g.pick("system", "sysbatch"), "sys"+g.pick("1", "2"), g.kv("cpu", 50, 300), g.kv("run", 0, 0), g.kv("v", 1, 2))
		}},
		{2, func(g generator) Step {
			return step("env", g.env(), g.kv("size", 0, 8), g.kv("cpu", 50, 200), g.kv("max", 0, 12))
		}},
		{4, func(g generator) Step {
			return step("claim", g.env(), g.kv("times", 1, 4), g.kv("idle", 0, 60), g.kv("wait", 0, 20))
		}},
		{2, func(g generator) Step { return step("release", g.kv("times", 1, 4)) }},
		{1, func(g generator) Step { return step("scale", g.job(), g.kv("count", 0, 6)) }},
		{1, func(g generator) Step {
			return step("stop", g.pick(g.job(), "batch"+g.job(), "sys1"), g.kv("purge", 0, 1))
		}},
		{1, func(g generator) Step { return step("delenv", g.env()) }},
		{1, func(g generator) Step { return step("stopalloc", g.kv("times", 1, 3)) }},
		{1, func(g generator) Step { return step("drain", g.node(), g.kv("deadline", -1, 60)) }},
		{1, func(g generator) Step { return step("undrain", g.node()) }},
		{1, func(g generator) Step { return step(g.pick("ineligible", "eligible"), g.node()) }},
		{1, func(g generator) Step {
			return step(g.pick("snapshot", "gc", "preempt", "evaluate", "purgenode"), g.node())
		}},
		{2, func(g generator) Step { return step("crash", g.secs(0, 30)) }},
		{2, func(g generator) Step { return step("trap", g.secs(0, 10), g.kv("point", 1, int(lastTrapPoint))) }},
		{1, func(g generator) Step { return step("lose", g.secs(0, 20)) }},
		{1, func(g generator) Step { return step(g.pick("logfull", "lossy", "stuck"), g.secs(5, 30)) }},
		{1, func(g generator) Step { return step(g.pick("kill", "reboot", "wipe"), g.node(), g.kv("for", 0, 60)) }},
		{1, func(g generator) Step { return step(g.pick("kill", "reboot"), g.node(), g.kv("for", 0, 60)) }},
		{1, func(g generator) Step { return step("cut", g.node(), g.kv("for", 1, 90)) }},
		{1, func(g generator) Step { return step(g.pick("slow", "full"), g.node(), g.kv("for", 10, 90)) }},
		{1, func(g generator) Step { return step(g.pick("skew", "oom"), g.node(), g.kv("seconds", -30, 30)) }},
	}
}

func step(verb string, args ...string) Step { return Step{Verb: verb, Args: args} }

func (g generator) job() string { return g.pick("a", "b", "c") }
func (g generator) env() string { return g.pick("x", "y") }

// step draws one.
func (g generator) step() Step {
	all, total := kinds(), 0
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
