package eventstream

import (
	"context"
	"sort"
	"strconv"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/invariant"
)

// ErrMissed tells that events are gone before the subscriber saw them: its index is older than the buffer, or it was
// too slow. It has the code Gone. The subscriber reads the state and subscribes anew.
var ErrMissed = drover.Errorf(drover.Gone, "events were missed: they are no longer kept")

// Request says what a subscriber wants.
type Request struct {
	Topics    map[string][]string // keys by topic; the topic "*" and the key "*" match all; empty = everything
	Namespace string              // "" and "*" match all; events without a namespace always pass
	Index     uint64              // the first index wanted; 0 = from the oldest kept
}

// Subscription is one subscriber's place in the stream. Next is called by one goroutine at a time.
type Subscription struct {
	b      *Buffer
	r      Request
	next   uint64 // number of the next item
	last   uint64 // index of the newest entry that Next returned
	closed chan struct{}
	once   sync.Once
}

// Subscribe returns a subscription that begins with the first entry whose index is at least r.Index.
// Errors: ErrMissed if events since r.Index are no longer kept.
func (b *Buffer) Subscribe(r Request) (*Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Index > 0 && r.Index <= b.floor {
		return nil, ErrMissed
	}
	at := sort.Search(len(b.items), func(i int) bool { return b.items[i].events.Index >= r.Index })
	return &Subscription{b: b, r: r, next: b.first + uint64(at), closed: make(chan struct{})}, nil
}

// Next blocks for the next entry with events that the subscriber wants, and returns those. Do not change them.
// Errors: ErrMissed if it was too slow, Gone after Close, Canceled when ctx ended.
func (s *Subscription) Next(ctx context.Context) (drover.Events, error) {
	for {
		e, more, err := s.take()
		switch {
		case err != nil:
			return drover.Events{}, err
		case more == nil:
			if e, ok := s.r.filter(e); ok {
				s.check(e.Index)
				return e, nil
			}
			continue
		}
		select {
		case <-more:
		case <-s.closed:
			return drover.Events{}, drover.Errorf(drover.Gone, "the subscription is closed")
		case <-ctx.Done():
			return drover.Events{}, drover.Errorf(drover.Canceled, "waiting for events: %w", context.Cause(ctx))
		}
	}
}

// check: a subscriber gets what it asked for, in order, each once.
func (s *Subscription) check(index uint64) {
	if index <= s.last || index < s.r.Index {
		invariant.Breach(invariant.EventsIncrease, strconv.FormatUint(index, 10), "a subscriber to %d and later gets it after %d", s.r.Index,
			s.last)
	}
	s.last = index
}

// take returns the next entry, or a channel that is closed when there may be one.
func (s *Subscription) take() (drover.Events, <-chan struct{}, error) {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case s.next < b.first:
		return drover.Events{}, nil, ErrMissed
	case s.next < b.first+uint64(len(b.items)):
		e := b.items[s.next-b.first].events
		s.next++
		if e.Index < s.r.Index {
			e.Events = nil // published after a subscription to a later index
		}
		return e, nil, nil
	}
	return drover.Events{}, b.more.C(), nil
}

// Close ends the subscription; a blocked Next returns. It may be called twice.
func (s *Subscription) Close() { s.once.Do(func() { close(s.closed) }) }
