package sim

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/leader"
)

// This file is evalbroker.Shell and leader/observe.go without locks: the same calls in the same order.

// Events implements fsm.Observer.
func (s *server) Events(ev drover.Events) { s.w.checkEvents(ev); s.runners.follow(ev) }

// EvaluationsChanged implements fsm.Observer.
func (s *server) EvaluationsChanged(_ uint64, evals []*drover.Evaluation) {
	for _, e := range evals {
		s.route(e)
	}
}

// CapacityFreed implements fsm.Observer.
func (s *server) CapacityFreed(index uint64, nodeID, class string) {
	if s.leads {
		s.blocked.Freed(nodeID, class, index)
		s.retime()
	}
}

// NodeChanged implements fsm.Observer.
func (s *server) NodeChanged(index uint64, nodeID string, n *drover.Node) {
	if n.Ready() {
		s.CapacityFreed(index, nodeID, n.ComputedClass)
	}
}

// JobChanged implements fsm.Observer.
func (s *server) JobChanged(uint64, drover.NamespacedID, *drover.Job) {}

func (s *server) route(e *drover.Evaluation) {
	switch {
	case e.Status == drover.EvalPending:
		s.enter(func(now time.Time) { s.broker.Enqueue(now, e) })
	case e.Status == drover.EvalBlocked:
		s.block(e)
	case e.Terminal():
		s.enter(func(time.Time) {
			s.broker.Remove(e.ID)
			if s.blocked.Remove(e.ID) {
				s.retime()
			}
		})
		if e.Status == drover.EvalComplete && len(e.FailedTGAllocs) == 0 {
			s.enter(func(time.Time) { s.blocked.Untrack(e.Job()) })
		}
	}
}

func (s *server) block(e *drover.Evaluation) {
	s.enter(func(time.Time) { s.blocked.Block(e, leader.Ask(s.store.Snapshot(), e)) })
	s.retime()
}

// enter runs f, then wakes who has to know.
func (s *server) enter(f func(now time.Time)) {
	if !s.leads {
		return
	}
	f(s.w.now)
	s.settle()
}

func (s *server) settle() {
	if next, ok := s.broker.Next(); ok && !next.Equal(s.timer) {
		s.timer = next
		s.term.after(next.Sub(s.w.now), "broker", func() { s.enter(s.broker.Expire) })
	}
	s.ready.raise()
	s.needless.raise()
}

// retime has the blocked evaluations looked at soon.
func (s *server) retime() {
	if s.waking || !s.leads {
		return
	}
	s.waking = true
	term := s.term
	s.w.after(s.w.between(0, time.Millisecond), "wake", func() {
		s.waking = false
		if term.over || !s.leads {
			return
		}
		s.enter(func(now time.Time) {
			if woken := s.blocked.Wake(s.room); len(woken) > 0 {
				s.broker.Enqueue(now, woken...)
			}
		})
	})
}

// room tells what is free on a node.
func (s *server) room(nodeID string) (drover.Capacity, bool) {
	snap := s.store.Snapshot()
	n := snap.Node(nodeID)
	if !n.Ready() {
		return drover.Capacity{}, false
	}
	return n.Total().Sub(snap.Used(nodeID)), true
}

// dequeue waits for an evaluation.
func (s *server) dequeue(p *proc, types ...string) (*drover.Evaluation, string) {
	mine := &signal{}
	s.ready = append(s.ready, mine)
	for {
		e, token, ok := s.broker.Dequeue(s.w.now, types...)
		if ok {
			s.ready = without(s.ready, mine)
			s.settle()
			return e, token
		}
		mine.wait(p, time.Hour)
	}
}

func without(l signalList, x *signal) signalList {
	var out signalList
	for _, s := range l {
		if s != x {
			out = append(out, s)
		}
	}
	return out
}

// finish tells the broker how an evaluation went. A stale token is an answer too: another worker has it.
func (s *server) finish(evalID string, f func(now time.Time) error) {
	rewake := false
	s.enter(func(now time.Time) {
		_ = f(now)
		rewake = s.blocked.Finished(evalID)
	})
	if rewake {
		s.retime()
	}
}
