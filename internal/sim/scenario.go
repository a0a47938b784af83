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

type generator struct {
	rng   *rand.Rand
	nodes int
}

func (g generator) pick(list ...string) string { return list[g.rng.IntN(len(list))] }
func (g generator) kv(k string, low, high int) string {
	return fmt.Sprintf("%s=%d", k, low+g.rng.IntN(high-low+1))
}
func (g generator) node() string { return fmt.Sprintf("n%d", g.rng.IntN(g.nodes)) }
func (g generator) secs(low, high int) string {
	return strconv.Itoa(low+g.rng.IntN(high-low+1)) + "s"
}

// step draws one: half of them are clients', a quarter operators', a quarter faults.
func (g generator) step() Step {
	job, env := g.pick("a", "b", "c"), g.pick("x", "y")
	switch g.rng.IntN(32) {
	case 0, 1, 2, 3:
		args := []string{job, g.kv("count", 0, 6), g.kv("cpu", 100, 700), g.kv("v", 1, 3)}
		for _, opt := range []string{
			g.kv("fail", 10, 60), g.kv("startfail", 10, 40), g.kv("ports", 1, 1), g.kv("static", 8080, 8081), g.kv("update", 1, 2),
			g.kv("tasks", 2, 2), g.kv("canary", 1, 1), g.kv("distinct", 1, 1), g.kv("spread", 1, 1), g.kv("priority", 20, 90),
			g.kv("away", 20, 200), g.kv("stay", 1, 1),
		} {
			if g.rng.IntN(5) == 0 {
				args = append(args, opt)
			}
		}
		return Step{Verb: "service", Args: args}
	case 4, 5:
		return Step{Verb: "batch", Args: []string{"batch" + job, g.kv("count", 1, 6), g.kv("cpu", 100, 600), g.kv("run", 1, 60), g.kv("fail", 0, 40)}}
	case 6:
		return Step{Verb: g.pick("system", "sysbatch"), Args: []string{"sys" + g.pick("1", "2"), g.kv("cpu", 50, 300), g.kv("run", 0, 0), g.kv("v", 1, 2)}}
	case 7, 8:
		return Step{Verb: "env", Args: []string{env, g.kv("size", 0, 8), g.kv("cpu", 50, 200), g.kv("max", 0, 12)}}
	case 9, 10, 11, 12:
		return Step{Verb: "claim", Args: []string{env, g.kv("times", 1, 4), g.kv("idle", 0, 60), g.kv("wait", 0, 20)}}
	case 13, 14:
		return Step{Verb: "release", Args: []string{g.kv("times", 1, 4)}}
	case 15:
		return Step{Verb: "scale", Args: []string{job, g.kv("count", 0, 6)}}
	case 16:
		return Step{Verb: "stop", Args: []string{g.pick(job, "batch"+job, "sys1"), g.kv("purge", 0, 1)}}
	case 17:
		return Step{Verb: "delenv", Args: []string{env}}
	case 18:
		return Step{Verb: "stopalloc", Args: []string{g.kv("times", 1, 3)}}
	case 19:
		return Step{Verb: "drain", Args: []string{g.node(), g.kv("deadline", -1, 60)}}
	case 20:
		return Step{Verb: "undrain", Args: []string{g.node()}}
	case 21:
		return Step{Verb: g.pick("ineligible", "eligible"), Args: []string{g.node()}}
	case 22:
		return Step{Verb: g.pick("snapshot", "gc", "preempt", "evaluate", "purgenode"), Args: []string{g.node()}}
	case 23, 24:
		return Step{Verb: "crash", Args: []string{g.secs(0, 30)}}
	case 25:
		return Step{Verb: "lose", Args: []string{g.secs(0, 20)}}
	case 26:
		return Step{Verb: g.pick("logfull", "lossy", "stuck"), Args: []string{g.secs(5, 30)}}
	case 27:
		return Step{Verb: g.pick("kill", "reboot", "wipe"), Args: []string{g.node(), g.kv("for", 0, 60)}}
	case 28:
		return Step{Verb: g.pick("kill", "reboot"), Args: []string{g.node(), g.kv("for", 0, 60)}}
	case 29:
		return Step{Verb: "cut", Args: []string{g.node(), g.kv("for", 1, 90)}}
	case 30:
		return Step{Verb: g.pick("slow", "full"), Args: []string{g.node(), g.kv("for", 10, 90)}}
	default:
		return Step{Verb: g.pick("skew", "oom"), Args: []string{g.node(), g.kv("seconds", -30, 30)}}
	}
}
