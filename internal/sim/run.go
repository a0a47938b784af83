package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/minheap"
	"github.com/drover-project/drover/internal/sim/scenario"
)

// restWithin is how long after the last fault everything has to be as it was asked for.
const restWithin = 30 * time.Minute

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
	return run(ctx, s, write, "")
}

// run is Run, with a rule that is broken on purpose.
func run(ctx context.Context, s scenario.Scenario, write func(string), broken mutation) (r Result) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &World{
		ctx: ctx, start: start, now: start, broken: broken, rng: rand.New(rand.NewPCG(s.Seed, 0x51e)), ids: id.NewSeeded(s.Seed),
		log: slog.New(slog.DiscardHandler), trace: newTrace(write), scenario: s,
		clients: &clients{handed: map[string]handed{}, tokens: map[string]string{}}, queue: minheap.New((*event).before, nil),
	}
	if write != nil {
		w.log = slog.New(slog.NewTextHandler(w, nil))
	}
	defer func() {
		if x := recover(); x != nil {
			r.Failure = failureText(x)
			w.say("BROKEN: %s", r.Failure)
			w.dump()
		}
		r.Events, r.Virtual, r.Trace, r.Trapped = w.events, w.elapsed(), w.trace.sum.Sum64(), w.trapped
		w.end()
	}()
	w.open(s.Servers)
	for i := range max(s.Nodes, 1) {
		w.addNode(i).start()
	}
	for _, step := range s.Steps {
		w.at(start.Add(step.At), "step", func() { w.do(step) })
	}
	w.runUntil(start.Add(s.Span))
	w.heal()
	w.comeToRest()
	w.checkStates()
	r.State, r.Entries = w.truth().Hash(), w.truth().Store().Index()
	w.replay()
	return r
}

// failureText tells what a panic says: a breach's own words, or the panic's value.
func failureText(x any) string {
	if b, ok := x.(breach); ok {
		return b.what
	}
	return fmt.Sprint(x)
}

// comeToRest waits until there is no unrest.
func (w *World) comeToRest() {
	healed := w.now
	why := ""
	for w.now.Sub(healed) < restWithin {
		w.runUntil(w.now.Add(10 * time.Second))
		if why = w.unrest(); why == "" {
			w.say("at rest")
			return
		}
	}
	w.breach("not at rest %s after the last fault: %s", restWithin, why)
}

// end ends all loops.
func (w *World) end() {
	for _, n := range w.nodes {
		if n.up() {
			n.agent.end()
		}
	}
	for _, s := range w.servers {
		if s == nil {
			continue
		}
		if s.term != nil {
			s.term.end()
		}
		if s.lessee.life != nil {
			s.lessee.life.end()
		}
		s.process.end()
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
