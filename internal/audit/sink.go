package audit

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/internal/wake"
)

// backend takes lines.
type backend interface {
	// start makes the backend ready and returns the line that its part of the chain begins with; nil if it goes on. It may change the
	// chain to what it finds. It is called before each batch.
	start(c *chain, now time.Time) (*record, error)
	// write writes whole lines; after it they last. If it fails, none of them was written as far as can be known, or they are kept: then
	// they are written before others.
	write(lines []byte) (kept bool, err error)
	close()
}

// The bounds of a sink.
const (
	maxQueue  = 16_384 // lines that wait for it
	maxBatch  = 512    // lines in one write
	sealEach  = time.Minute
	retryEach = time.Second
	patience  = 10 * time.Second // of a request that waits
)

// Sink is a place for lines, and the chain of those that were written there.
type Sink struct {
	name     string
	enforced bool
	to       backend
	state    *state // nil: the chain ends with the process
	clock    clock.Clock
	log      *slog.Logger
	seldom   telemetry.Seldom

	mu      sync.Mutex
	queue   []*entry // guarded by mu
	dropped uint64   // guarded by mu: lines that found no place, since one told of it
	stopped bool     // guarded by mu
	failure error    // guarded by mu: why the last batch was not written; nil if it was

	wake wake.Signal // a line was queued

	// Owned by the run loop.
	chain  chain
	sealed time.Time // when the last seal was tried
	buffer []byte
}

// entry is a line that waits to be written.
type entry struct {
	body []byte
	left uint64     // lines that were left out before it
	done chan error // nil: nobody waits
	sink string
}

// put queues a line. It has a done to wait for if the sink is enforced and wait is set.
func (s *Sink) put(body []byte, left uint64, wait bool) *entry {
	e := &entry{body: body, left: left, sink: s.name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait && s.enforced {
		e.done = make(chan error, 1)
	}
	switch {
	case s.stopped && e.done != nil:
		e.done <- errStopped
		return e
	case len(s.queue) >= maxQueue && e.done != nil:
		e.done <- drover.Errorf(drover.Unavailable, "too many lines wait for it")
		return e
	case s.stopped, len(s.queue) >= maxQueue:
		s.dropped++
		return e
	}
	s.queue = append(s.queue, e)
	s.wake.Send()
	return e
}

// wait returns once the line lasts. Errors: Unavailable.
func (e *entry) wait(c clock.Clock) error {
	var err error
	select {
	case err = <-e.done: // most often it is there at once
	default:
		timer := c.NewTimer(patience)
		defer timer.Stop()
		select {
		case err = <-e.done:
		case <-timer.C():
			err = drover.Errorf(drover.Unavailable, "it did not answer within %s", patience)
		}
	}
	if err == nil {
		return nil
	}
	return drover.Errorf(drover.Unavailable, "the request cannot be recorded, so it was not carried out: audit sink %q: %w", e.sink, err)
}

// run writes what is queued, and a seal each minute in which there was something, until ctx ends.
func (s *Sink) run(ctx context.Context) {
	s.sealed = s.clock.Now()
	timer := s.clock.NewTimer(sealEach)
	defer timer.Stop()
	for {
		again := sealEach
		if !s.flush() {
			again = retryEach
		}
		if s.clock.Now().Sub(s.sealed) >= sealEach {
			s.sealNow()
		}
		timer.Stop()
		timer.Reset(again)
		select {
		case <-s.wake.C():
		case <-timer.C():
		case <-ctx.Done():
			s.finish()
			return
		}
	}
}

// finish writes the last lines.
func (s *Sink) finish() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.flush()
	s.sealNow()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.queue {
		if e.done != nil {
			e.done <- errStopped
		}
	}
	if n := len(s.queue); n > 0 {
		s.log.Error("lines of the audit are lost: the sink does not take them", "sink", s.name, "lines", n, "error", s.failure)
	}
	s.queue = nil
}

func (s *Sink) close() {
	s.to.close()
	if s.state != nil {
		s.state.close()
	}
}

// flush writes all that is queued; false if that failed.
func (s *Sink) flush() bool {
	for {
		s.mu.Lock()
		batch := s.queue[:min(len(s.queue), maxBatch)]
		dropped := s.dropped
		s.mu.Unlock()
		if len(batch) == 0 {
			return true
		}
		taken, err := s.write(batch, dropped)
		s.mu.Lock()
		s.queue = s.queue[len(batch):]
		if taken {
			s.dropped -= dropped
		} else {
			s.queue = append(unawaited(batch), s.queue...)
		}
		s.failure = err
		s.mu.Unlock()
		for _, e := range batch {
			if e.done != nil {
				e.done <- err
			}
		}
		if err != nil {
			s.seldom.Warn(s.log, s.clock.Now(), "the audit cannot be written", "sink", s.name, "enforced", s.enforced, "error", err)
			return false
		}
	}
}

// unawaited are the lines that nobody waits for: they are tried again.
func unawaited(batch []*entry) (out []*entry) {
	for _, e := range batch {
		if e.done == nil {
			out = append(out, e)
		}
	}
	return out
}

// write writes a batch, and tells whether the chain has it now.
func (s *Sink) write(batch []*entry, dropped uint64) (taken bool, err error) {
	next, b, err := s.begin()
	if err != nil {
		return false, err
	}
	for _, e := range batch {
		body := e.body
		if n := e.left + dropped; n > 0 {
			body = append(append([]byte(nil), body...), `,"dropped":`...)
			body = strconv.AppendUint(body, n, 10)
			dropped = 0
		}
		b = next.add(b, body)
	}
	return s.commit(next, b)
}

// begin returns the chain, and what a batch begins with.
func (s *Sink) begin() (next chain, b []byte, err error) {
	next, b = s.chain, s.buffer[:0]
	now := s.clock.Now()
	start, err := s.to.start(&next, now)
	if err == nil && start != nil {
		start.CreatedAt, start.Type, start.Sink = now.UTC(), startType, s.name
		if start.Torn > 0 {
			b = append(b, '\n') // of the line before
		}
		b = next.add(b, start.body())
	}
	return next, b, err
}

// commit writes lines, and takes up the chain's new end.
func (s *Sink) commit(next chain, b []byte) (taken bool, err error) {
	s.buffer = b
	kept, err := s.to.write(b)
	if err != nil && !kept {
		return false, err
	}
	s.chain = next
	if s.state != nil {
		if e := s.state.mark(next); e != nil {
			s.seldom.Warn(s.log, s.clock.Now(), "the head of the audit cannot be kept", "sink", s.name, "error", e)
		}
	}
	return true, err
}

// sealNow seals what was written, if something was, and gives the key away.
func (s *Sink) sealNow() {
	now := s.clock.Now()
	s.sealed = now
	if !s.chain.dirty {
		return
	}
	next, b, err := s.begin()
	if err == nil {
		b = next.seal(b, now)
		var taken bool
		if taken, err = s.commit(next, b); taken && s.state != nil {
			err = errors.Join(err, s.state.keep(s.chain))
		}
	}
	if err != nil {
		s.seldom.Warn(s.log, now, "the audit cannot be sealed", "sink", s.name, "error", err)
	}
}
