package virtual

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/minheap"
)

// World is a world in virtual time, in which loops run on one goroutine. Nothing of it is for several.
type World struct {
	start time.Time
	Now   time.Time
	queue *minheap.Heap[*event]
	Seq   uint64
	Rng   *rand.Rand
	Trace *trace

	Current  *Proc
	watchers []*Proc

	Events int
	still  int // of them, at the same moment
}

// New begins a world at a time, with chances that follow from the seed. write, if not nil, is given the lines of the trace.
func New(start time.Time, chances *rand.Rand, write func(string)) *World {
	return &World{start: start, Now: start, Rng: chances, Trace: newTrace(write), queue: minheap.New((*event).before, nil)}
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

// At has f called at t, or now if that is past.
func (w *World) At(t time.Time, label string, f func()) {
	if t.Before(w.Now) {
		t = w.Now
	}
	w.Seq++
	w.queue.Push(&event{t, w.Seq, label, f})
}

// After has f called after d. The label goes into the trace's hash, so that two runs can be compared event by event.
func (w *World) After(d time.Duration, label string, f func()) { w.At(w.Now.Add(d), label, f) }

// RunUntil lets happen what is due until t.
func (w *World) RunUntil(t time.Time) {
	for w.queue.Len() > 0 && !w.queue.Top().at.After(t) {
		e := w.queue.Pop()
		w.stuckAt(e)
		w.Now = e.at
		w.Events++
		w.Trace.mix(w.Now.Sub(w.start), e.label)
		e.f()
		w.poke()
	}
	w.Now = t
}

// Elapsed is the virtual time since the start.
func (w *World) Elapsed() time.Duration { return w.Now.Sub(w.start) }

// Between returns a random duration; most are near low.
func (w *World) Between(low, high time.Duration) time.Duration {
	x := w.Rng.Float64()
	return low + time.Duration(x*x*x*float64(high-low))
}

// Chance draws whether something happens that does so in so many of a hundred cases.
func (w *World) Chance(percent int) bool { return w.Rng.IntN(100) < percent }

// Say adds a line to the trace. It must not draw random numbers, as a run must be the same with and without readers.
func (w *World) Say(format string, args ...any) { w.Trace.line(w.Elapsed(), format, args...) }

// Write implements io.Writer for the log of what runs in the world.
func (w *World) Write(line []byte) (int, error) {
	_, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ") // its time is not the world's
	w.Say("log: %s", text)
	return len(line), nil
}

// Breach is a broken invariant: it ends the run.
type Breach struct{ What string }

// Breach ends the run: an invariant is broken.
func (w *World) Breach(format string, args ...any) { panic(Breach{fmt.Sprintf(format, args...)}) }

// stuckAt ends a run in which nothing but the same moment comes: a loop does not wait.
func (w *World) stuckAt(e *event) {
	if e.at.After(w.Now) {
		w.still = 0
	} else if w.still++; w.still > 100_000 {
		w.Breach("time stands still at %s: %s", w.Elapsed(), e.label)
	}
}
