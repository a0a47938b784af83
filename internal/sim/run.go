package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// restWithin is how long after the last fault everything has to be as it was asked for.
const restWithin = 30 * time.Minute

// mendAfter is how long after it what always fails goes on failing. The policy of a job may have it replaced for ever, so that it
// does not come to rest; what is to become of its deployment it has become by then.
const mendAfter = 10 * time.Minute

// Result is what a run came to.
type Result struct {
	State   [32]byte // hash of the final state
	Trace   uint64   // hash of everything that happened, in its order
	Events  int
	Entries uint64
	Virtual time.Duration
	Failure string // which invariant broke; "" = none
	// Trapped is how often the server was killed at each point between a claim's line in the journal and its record in the
	// log. Its first element is not used.
	Trapped [lastTrapPoint + 1]int
}

// Run runs a scenario to its end, or to the first broken invariant. write, if not nil, is given a line for each thing
// worth reading. The same scenario gives the same result.
func Run(ctx context.Context, s scenario.Scenario, write func(string)) Result {
	return run(ctx, s, write, "", alone{})
}

// Play is Run with what a package beside this one adds.
func Play(ctx context.Context, s scenario.Scenario, write func(string), x Extra) Result {
	return run(ctx, s, write, "", x)
}

// run is Play, with a rule that is broken on purpose.
func run(ctx context.Context, s scenario.Scenario, write func(string), broken mutation, x Extra) (r Result) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &World{
		World: virtual.New(start, rand.New(rand.NewPCG(s.Seed, 0x51e)), write), ctx: ctx, broken: broken, extra: x, ids: id.NewSeeded(s.Seed),
		log: slog.New(slog.DiscardHandler), scenario: s,
		clients: &clients{handed: map[string]handed{}, tokens: map[string]string{}},
	}
	if write != nil {
		w.log = slog.New(slog.NewTextHandler(w, nil))
	}
	defer func() {
		if x := recover(); x != nil {
			r.Failure = failureText(x)
			w.Say("BROKEN: %s", r.Failure)
			w.dump()
		}
		r.Events, r.Virtual, r.Trace, r.Trapped = w.Events, w.Elapsed(), w.Trace.Sum.Sum64(), w.trapped
		w.end()
	}()
	w.open(s.Servers)
	for i := range max(s.Nodes, 1) {
		w.addNode(i).start()
	}
	for _, step := range s.Steps {
		w.At(start.Add(step.At), "step", func() { w.do(step) })
	}
	w.RunUntil(start.Add(s.Span))
	w.heal()
	w.comeToRest()
	w.checkStates()
	r.State, r.Entries = w.truth().Hash(), w.truth().Store().Index()
	if _, alone := x.(alone); alone { // one test that the log gives the state is enough
		w.replay()
	}
	return r
}

// failureText tells what a panic says: a breach's own words, or the panic's value.
func failureText(x any) string {
	if b, ok := x.(virtual.Breach); ok {
		return b.What
	}
	return fmt.Sprint(x)
}

// comeToRest waits until there is no unrest.
func (w *World) comeToRest() {
	why := ""
	for w.Now.Sub(w.healed) < restWithin {
		if s := w.servers[0]; w.quorum == nil {
			s.process.Spawn("decide", func(*virtual.Proc) { w.extra.Decide(w.ctx, s.intake) })
		}
		w.RunUntil(w.Now.Add(10 * time.Second))
		if why = w.unrest(); why == "" {
			w.Say("at rest")
			return
		}
	}
	w.Breach("not at rest %s after the last fault: %s", restWithin, why)
}

// end ends all loops.
func (w *World) end() {
	for _, n := range w.nodes {
		if n.Up() {
			n.Agent.End()
		}
	}
	for _, s := range w.servers {
		if s == nil {
			continue
		}
		if s.term != nil {
			s.term.End()
		}
		if s.lessee.life != nil {
			s.lessee.life.End()
		}
		s.process.End()
		s.cancel()
	}
}

// open boots the servers of a world that has nothing yet; 0 is one that is alone.
func (w *World) open(several int) {
	n := max(several, 1)
	w.disks, w.servers = make([]*disk, n), make([]*server, n)
	if several > 0 {
		w.quorum, w.net = newQuorum(w), newNetwork(w)
		w.lagging, w.steps, w.troubled = make([]time.Time, n), make([]time.Duration, n), make([]time.Time, n)
	}
	for i := range n {
		w.disks[i] = &disk{}
		w.boot(i)
	}
	if several > 0 {
		w.quorum.tick()
	}
}
