package scenario

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Several draws a scenario of three servers, seldom five.
func Several(seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, 0x5e7e4a1))
	s := Scenario{Seed: seed, Servers: 3, Nodes: 2 + rng.IntN(4), Span: time.Duration(2+rng.IntN(4)) * time.Minute}
	if rng.IntN(5) == 0 {
		s.Servers = 5
	}
	g := generator{rng, s.Nodes, s.Servers}
	for range 25 + rng.IntN(50) {
		step := g.draw(severalKinds())
		step.At = time.Duration(rng.Int64N(int64(s.Span))).Truncate(time.Millisecond)
		s.Steps = append(s.Steps, step)
	}
	for i, env := range []string{"x", "y"} { // else most claims would be of environments that are not there yet
		first := step("env", env, g.kv("size", 2, 8), g.kv("cpu", 50, 100))
		first.At = time.Duration(4+i) * time.Second
		s.Steps = append(s.Steps, first)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return s
}

// server draws a server.
func (g generator) server() string { return g.kv("server", 0, g.servers-1) }

// severalKinds are those of one server, but for its own faults, and what happens among several.
func severalKinds() []kind {
	all := slices.DeleteFunc(kinds(), func(k kind) bool { return k.alone })
	return append(all, []kind{
		{weight: 4, draw: func(g generator) Step {
			return step("claim", g.env(), g.kv("times", 1, 6), g.kv("idle", 0, 60), g.kv("wait", 0, 20))
		}},
		{weight: 1, draw: func(g generator) Step { return step("template", "p"+g.pick("1", "2")) }},
		{weight: 2, draw: func(g generator) Step { return step("dispatch", "p"+g.pick("1", "2"), g.kv("token", 0, 7)) }},
		{weight: 2, draw: func(g generator) Step { return step("crash", g.secs(0, 30), g.server()) }},
		{weight: 2, draw: func(g generator) Step { return step("trap", g.secs(0, 20), g.kv("point", 1, TrapPoints)) }},
		{weight: 3, draw: func(g generator) Step { return step("pause", g.secs(1, 30), g.server()) }},
		{weight: 2, draw: func(g generator) Step { return step("lose", g.secs(0, 0)) }},
		{weight: 3, draw: func(g generator) Step {
			return step("part", g.secs(1, 60), g.server(), g.kv("other", 0, g.servers-2), g.kv("way", 0, 2))
		}},
		{weight: 3, draw: func(g generator) Step { return step("alone", g.secs(1, 60), g.server(), g.kv("way", 0, 2)) }},
		{weight: 1, draw: func(g generator) Step { return step("lag", g.secs(5, 60), g.server()) }},
		{weight: 1, draw: func(g generator) Step { return step("step", "0s", g.server(), g.kv("seconds", -600, 600)) }},
		{weight: 1, draw: func(g generator) Step {
			return step(g.pick("loss", "repeat", "slownet"), g.secs(5, 60), g.kv("percent", 5, 40))
		}},
		{weight: 1, draw: func(g generator) Step { return step(g.pick("logfull", "lossy", "stuck"), g.secs(5, 30)) }},
		{weight: 1, draw: func(g generator) Step { return step("stand", g.node(), g.kv("for", 1, 60)) }},
	}...)
}
