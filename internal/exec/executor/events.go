package executor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/ledger"
	"github.com/drover-project/drover/internal/wake"
)

// Types of events about executions.
const (
	EventStarted = "ExecutionStarted"
	EventEnded   = "ExecutionEnded"
	// EventTold is that an execution's webhook needs no telling any more. It is only for those who keep Records.
	EventTold = "ExecutionTold"
)

// Event is something that happened to an execution.
type Event struct {
	Type      string
	Execution execution.Execution // without variables, with at most a few KB of the command
	Webhook   string              // to be told of its end
	Request   string              // a digest of the request, if that had an idempotency key

	done func() // called when it was told; nil: nothing
}

// Teller puts events into the event stream, in one step and in order; with Records it keeps what they need. Errors:
// they are told again.
type Teller interface {
	TellExecutions(ctx context.Context, events []Event) error
}

// The bounds of telling.
const (
	tellEvery = 200 * time.Millisecond // what happens within is told together: an entry of the log costs more than an execution
	maxTold   = 1_000                  // at once
	maxUntold = 100_000                // then the oldest are dropped, or nothing is started
	flushFor  = 2 * time.Second
)

// feed keeps what is still to be told.
type feed struct {
	more  wake.Signal // there is something to tell
	keeps bool        // ends are records, which must not be lost

	mu      sync.Mutex
	waiting []Event // guarded by mu
	dropped int     // guarded by mu
}

// newFeed returns an empty feed. It starts no goroutine: Executor.tell empties it.
func newFeed(keeps bool) feed { return feed{more: wake.NewSignal(), keeps: keeps} }

// publish adds one event and never blocks, because it runs on the path of every start and end. When too many wait
// the oldest thousand are dropped at once: deleting one at a time would move the whole list each time. What is kept as
// a record is not dropped: there is no more of it than executions that run, since none is started while the feed is full.
func (f *feed) publish(e Event) {
	e = withoutSecrets(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.waiting); n >= maxUntold && n%maxTold == 0 {
		left := maxTold
		f.waiting = slices.DeleteFunc(f.waiting, func(e Event) bool {
			if f.keeps && e.Type != EventStarted || left == 0 {
				return false
			}
			left--
			f.dropped++
			return true
		})
	}
	f.waiting = append(f.waiting, e)
	f.more.Send()
}

// withoutSecrets leaves variables out, as they may hold secrets, and most of a long command.
func withoutSecrets(e Event) Event {
	e.Execution.Spec.Env = nil
	e.Execution.Spec.Argv = ledger.Shortened(e.Execution.Spec.Argv)
	return e
}

// full reports whether what would have to be kept may be too much.
func (f *feed) full() bool {
	if !f.keeps {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting) >= maxUntold
}

// take takes the oldest events out.
func (f *feed) take() (events []Event, dropped int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(f.waiting), maxTold)
	events = slices.Clone(f.waiting[:n])
	f.waiting = slices.Delete(f.waiting, 0, n)
	dropped, f.dropped = f.dropped, 0
	return events, dropped
}

// putBack takes back the oldest events, which were not told.
func (f *feed) putBack(events []Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(events, f.waiting...)
}

// tell puts events into the stream until ctx ends. What was not told by then is flush's.
func (s *Executor) tell(ctx context.Context) {
	if s.deps.Teller == nil {
		return
	}
	wait := tellEvery
	for {
		select {
		case <-s.feed.more.C():
		case <-ctx.Done():
			return
		}
		clock.Sleep(ctx, s.deps.Clock, tellEvery)
		for events := s.untold(); len(events) > 0; {
			err := s.tellNow(ctx, events)
			if err == nil {
				events, wait = s.untold(), tellEvery
				continue
			}
			if ctx.Err() == nil {
				s.deps.Log.Warn("telling of executions, trying again", "events", len(events), "error", err)
				clock.Sleep(ctx, s.deps.Clock, wait)
			}
			if ctx.Err() != nil {
				s.feed.putBack(events)
				return
			}
			wait = min(2*wait, 5*time.Second)
		}
	}
}

// flush records what happened up to the end of Run: another server leads now, or is to, and knows it by the records only.
func (s *Executor) flush(ctx context.Context) {
	if s.deps.Records == nil || s.deps.Teller == nil {
		return
	}
	ctx, cancel := s.deps.Clock.WithTimeout(context.WithoutCancel(ctx), flushFor)
	defer cancel()
	for events := s.untold(); len(events) > 0; events = s.untold() {
		if err := s.tellNow(ctx, events); err != nil { // the runners go on keeping them
			s.deps.Log.Warn("recording executions at the end of leading", "events", len(events), "error", err)
			return
		}
	}
}

// tellNow tells the events, and then does what waits for that.
func (s *Executor) tellNow(ctx context.Context, events []Event) error {
	if err := s.deps.Teller.TellExecutions(ctx, events); err != nil {
		return err
	}
	for _, e := range events {
		if e.done != nil {
			e.done()
		}
	}
	return nil
}

// untold takes the next events to be told, at most maxTold; none if all were told. What was dropped in between is
// logged.
func (s *Executor) untold() []Event {
	events, dropped := s.feed.take()
	if dropped > 0 {
		s.deps.Log.Error("events of executions are not told: there were too many", "events", dropped)
	}
	return events
}
