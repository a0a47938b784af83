package nomad_test

import (
	"context"
	"slices"
	"sync"

	"drover"
	"drover/internal/httpapi/nomad"
)

// ring is a small event stream that forgets nothing and filters by topic only.
type ring struct {
	mu    sync.Mutex
	lines []drover.Events
	more  chan struct{} // closed and replaced when there are more
}

func newRing() *ring { return &ring{more: make(chan struct{})} }

func (r *ring) publish(e drover.Events) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, e)
	close(r.more)
	r.more = make(chan struct{})
}

func (r *ring) Subscribe(topics map[string][]string, _ string, index uint64) (nomad.Subscription, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, _ := slices.BinarySearchFunc(r.lines, index, func(e drover.Events, i uint64) int { return int(e.Index) - int(i) })
	return &ringReader{ring: r, at: at, topics: topics}, nil
}

type ringReader struct {
	ring   *ring
	at     int
	topics map[string][]string
}

func (s *ringReader) Close() {}

func (s *ringReader) Next(ctx context.Context) (drover.Events, error) {
	for {
		s.ring.mu.Lock()
		lines, more := s.ring.lines[s.at:], s.ring.more
		s.ring.mu.Unlock()
		for _, l := range lines {
			s.at++
			out := drover.Events{Index: l.Index}
			for _, e := range l.Events {
				if s.topics[e.Topic] != nil || s.topics["*"] != nil {
					out.Events = append(out.Events, e)
				}
			}
			if len(out.Events) > 0 {
				return out, nil
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return drover.Events{}, ctx.Err()
		}
	}
}
