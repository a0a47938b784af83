package agent

import (
	"sync"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/exchange"
)

// Sight is what the node has seen of control's state. It does not do what an older state wants: a server may lag behind others,
// come back after a while, or have been away without knowing it.
type Sight struct {
	mu   sync.Mutex
	seen exchange.Seen // guarded by mu
}

// Now is what was seen until now.
func (s *Sight) Now() exchange.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// Registered takes over what the answer to a registration says: it is the leader's, so its state is what counts from then on,
// unless a leader answers that another has replaced.
func (s *Sight) Registered(r exchange.Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Age == s.seen.Age:
		s.seen.State = max(s.seen.State, r.Index)
	case r.Age == "" || !cluster.Before(r.Age, s.seen.Age): // "": a server that is alone and has forgotten all
		s.seen = exchange.Seen{State: r.Index, Age: r.Age}
	}
}

// Forget has all that is wanted told anew, but of no older state.
func (s *Sight) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Index, s.seen.Answer = 0, ""
}

// older reports whether the assignment is of an older state.
func older(a exchange.Assignment, seen exchange.Seen) bool {
	switch {
	case a.Age != seen.Age:
		return cluster.Before(a.Age, seen.Age)
	case a.Age == "":
		return a.Index < seen.Index
	}
	return a.State < seen.State
}

// Take notes that an assignment is obeyed. It reports whether that may be, and whether it says anything new. A server that is
// alone may have been put back to an older state: then insist is set, after a while. What says nothing new is not carried out, so that the
// answer before stays the one that the node has.
func (s *Sight) Take(a exchange.Assignment, insist bool) (ok, news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if older(a, s.seen) && (s.seen.Age != "" || !insist) {
		return false, false
	}
	news = s.seen.Index == 0 || a.Index != s.seen.Index || a.Age != s.seen.Age
	answer := s.seen.Answer
	if news {
		answer = a.Answer
	}
	s.seen = exchange.Seen{Index: max(a.Index, 1), State: a.State, Age: a.Age, Answer: answer}
	return true, news
}
