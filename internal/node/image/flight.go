package image

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// flight is a fetch that is under way, and those who wait for it.
type flight struct {
	done    chan struct{}
	waiters map[*Request]bool // guarded by Store.mu
	cancel  context.CancelFunc
	rec     *record // set before done is closed
	err     error   // set before done is closed
}

// join waits for the fetch of this image by this account, or starts it. It ends with its last waiter: a layer that is
// whole by then stays.
func (s *Store) join(ctx context.Context, r *Request) (*record, error) {
	key := strings.Join([]string{r.Ref, r.Username, r.Password, strconv.FormatBool(len(r.SignedBy) > 0)}, "\x00")
	s.mu.Lock()
	f := s.flights[key]
	if f == nil {
		fetchCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{done: make(chan struct{}), waiters: map[*Request]bool{}, cancel: cancel}
		s.flights[key] = f
		go s.fly(fetchCtx, f, key, *r) // ends with the fetch, or when nobody waits for it
	}
	f.waiters[r] = true
	s.mu.Unlock()
	defer s.leave(f, key, r)
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("image %s is still being pulled: %w", r.Ref, context.Cause(ctx))
	case <-f.done:
		return f.rec, f.err
	}
}

// fly fetches the image and publishes the result to all waiters. It runs in a goroutine of its own, which ends with the
// fetch; cancelling ctx ends that early.
func (s *Store) fly(ctx context.Context, f *flight, key string, r Request) {
	defer f.cancel()
	f.rec, f.err = s.fetch(ctx, r, func(p Progress) { s.tell(f, p) })
	s.mu.Lock()
	if s.flights[key] == f {
		delete(s.flights, key)
	}
	s.mu.Unlock()
	close(f.done)
}

// leave takes one waiter off the flight. The last one cancels the fetch; after a fetch that ended, that changes nothing.
func (s *Store) leave(f *flight, key string, r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(f.waiters, r)
	if len(f.waiters) > 0 {
		return
	}
	f.cancel()
	if s.flights[key] == f { // who comes now starts anew
		delete(s.flights, key)
	}
}

// tell tells all who wait. They must not call the store.
func (s *Store) tell(f *flight, p Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range f.waiters {
		if r.Progress != nil {
			r.Progress(p)
		}
	}
}
