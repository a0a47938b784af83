package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/minheap"
	"github.com/drover-project/drover/internal/sim/scenario"
)

// World is everything that is simulated. Nothing of it is for several goroutines.
type World struct {
	ctx   context.Context // of the run; handed to real code
	start time.Time
	now   time.Time
	queue *minheap.Heap[*event]
	seq   uint64
	rng   *rand.Rand
	ids   *id.Seeded
	log   *slog.Logger
	trace *trace

	current  *proc
	watchers []*proc

	scenario scenario.Scenario
	broken   mutation
	disks    []*disk   // of the servers
	servers  []*server // in their newest lives
	quorum   *quorum   // nil: there is one server, which is alone
	net      *network
	lagging  []time.Time     // until when servers lag
	troubled []time.Time     // until when something is wrong with servers
	steps    []time.Duration // how far their clocks are ahead
	nodes    []*node
	clients  *clients
	quiet    bool // the faults are over
	lossy    bool // answers of the log get lost
	full     bool // the log's disk is full, at every server
	stuck    bool // workers get stuck now and then
	trap     trap
	trapped  [lastTrapPoint + 1]int // how often the server died at each point
	events   int
	still    int // of them, at the same moment
	last     lastSeen
}

// event is something that happens at a time. Events of the same time happen in the order of their making.
type event struct {
	at    time.Time
	seq   uint64
	label string
	f     func()
}

// before orders events by time, and by their making if that is the same.
func (e *event) before(o *event) bool {
	if !e.at.Equal(o.at) {
		return e.at.Before(o.at)
	}
	return e.seq < o.seq
}

// at has f called at t, or now if that is past.
func (w *World) at(t time.Time, label string, f func()) {
	if t.Before(w.now) {
		t = w.now
	}
	w.seq++
	w.queue.Push(&event{t, w.seq, label, f})
}

// after has f called after d. The label goes into the trace's hash, so that two runs can be compared event by event.
func (w *World) after(d time.Duration, label string, f func()) { w.at(w.now.Add(d), label, f) }

// runUntil lets happen what is due until t.
func (w *World) runUntil(t time.Time) {
	for w.queue.Len() > 0 && !w.queue.Top().at.After(t) {
		e := w.queue.Pop()
		w.stuckAt(e)
		w.now = e.at
		w.events++
		w.trace.mix(w.now.Sub(w.start), e.label)
		e.f()
		w.poke()
	}
	w.now = t
}

// elapsed is the virtual time since the start.
func (w *World) elapsed() time.Duration { return w.now.Sub(w.start) }

// between returns a random duration; most are near low.
func (w *World) between(low, high time.Duration) time.Duration {
	x := w.rng.Float64()
	return low + time.Duration(x*x*x*float64(high-low))
}

// chance draws whether something happens that does so in so many of a hundred cases.
func (w *World) chance(percent int) bool { return w.rng.IntN(100) < percent }

// say adds a line to the trace. It must not draw random numbers, as a run must be the same with and without readers.
func (w *World) say(format string, args ...any) { w.trace.line(w.elapsed(), format, args...) }

// Write implements io.Writer for the log of what runs in the world.
func (w *World) Write(line []byte) (int, error) {
	_, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ") // its time is not the world's
	w.say("log: %s", text)
	return len(line), nil
}

// breach is a broken invariant: it ends the run.
type breach struct{ what string }

func (w *World) breach(format string, args ...any) { panic(breach{fmt.Sprintf(format, args...)}) }

// stuckAt ends a run in which nothing but the same moment comes: a loop does not wait.
func (w *World) stuckAt(e *event) {
	if e.at.After(w.now) {
		w.still = 0
	} else if w.still++; w.still > 100_000 {
		w.breach("time stands still at %s: %s", w.elapsed(), e.label)
	}
}
