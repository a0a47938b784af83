package agent

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/wake"
)

// Control records many releases by one entry of its log, so many runners are to be stopped at once. Stopping them competes
// with those who use other runners meanwhile. While runners are in use, released ones are therefore stopped one by one.
const (
	stopPace  = 5 * time.Millisecond
	stopsMost = 50 // that wait; beyond them all are stopped at once
)

// stops is the queue of released runners that are still to be stopped.
type stops struct {
	clock clock.Clock
	busy  func() bool
	more  wake.Signal // there is something to do

	mu      sync.Mutex // guards what follows
	waiting []func()
}

// newStops returns an empty queue; busy tells whether people use runners of this node at the moment.
func newStops(c clock.Clock, busy func() bool) *stops {
	return &stops{clock: c, busy: busy, more: wake.NewSignal()}
}

// released reports whether control wants an end to a runner that was claimed. Nobody waits for that.
func released(a *drover.Allocation) bool {
	return a.Claim != nil && a.ServerTerminal() && !a.ClientTerminal()
}

// add enqueues a stop.
func (s *stops) add(stop func()) {
	s.mu.Lock()
	s.waiting = append(s.waiting, stop)
	s.mu.Unlock()
	s.more.Send()
}

// run calls what was added until ctx ends; what is left is then asked for again by control, at the next start.
func (s *stops) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.more.C():
		}
		for ctx.Err() == nil && s.next() {
			if s.busy() {
				clock.Sleep(ctx, s.clock, stopPace)
			}
		}
	}
}

// next calls the oldest stop in the queue, or all of them if they are more than stopsMost. It reports whether there was one.
func (s *stops) next() bool {
	s.mu.Lock()
	n := min(len(s.waiting), 1)
	if len(s.waiting) > stopsMost {
		n = len(s.waiting)
	}
	due := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	s.mu.Unlock()
	for _, stop := range due {
		stop()
	}
	return n > 0
}
