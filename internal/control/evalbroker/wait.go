package evalbroker

import (
	"context"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/wake"
)

// Dequeue waits for an evaluation of one of the types; see Broker.Dequeue. The error is the context's.
func (s *Shell) Dequeue(ctx context.Context, types ...string) (*drover.Evaluation, string, error) {
	w := &waiter{types: types, wake: wake.NewSignal()}
	for {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		if e, token, ok := s.tryDequeue(w); ok {
			return e, token, nil
		}
		if !clock.Await(ctx, s.clock, clock.Forever, w.wake.C()) {
			s.leave(w)
		}
	}
}

// tryDequeue dequeues, or queues up as a waiter.
func (s *Shell) tryDequeue(w *waiter) (*drover.Evaluation, string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enabled {
		before, had := s.broker.Next()
		e, token, ok := s.broker.Dequeue(s.clock.Now(), w.types...)
		s.settle(before, had)
		if ok {
			return e, token, true
		}
	}
	s.waiting = append(s.waiting, w)
	return nil, "", false
}

// leave takes a waiter out. If it was woken meanwhile, another one gets the wake-up.
func (s *Shell) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.waiting, w); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
		return
	}
	s.wakeWaiters()
}

// wakeWaiters wakes as many waiters as there are ready evaluations of their types. Called with the mutex.
func (s *Shell) wakeWaiters() {
	if len(s.waiting) == 0 {
		return
	}
	left := map[string]int{}
	for t, h := range s.broker.ready {
		if n := h.Len(); n > 0 {
			left[t] = n
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		for _, t := range w.types {
			if left[t] > 0 {
				left[t]--
				w.wake.Send()
				return true
			}
		}
		return false
	})
}
