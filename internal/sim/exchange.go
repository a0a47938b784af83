package sim

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
)

// This file is what assignment does with goroutines: the gathering of pushes and the waiting of pulls. Registrations
// and heartbeats are its own.

type pushBatch struct {
	nodes []command.NodeUpdates
	asks  []*signal
	err   error
}

// push stores what a node reports, together with what others report meanwhile.
func (s *server) push(p *proc, nodeID string, updates []exchange.AllocUpdate) error {
	if s.process.over {
		return drover.Errorf(drover.Unavailable, "connection refused")
	}
	if s.store.Snapshot().Node(nodeID) == nil {
		return drover.Errorf(drover.NotFound, "node not found")
	}
	b := s.batch
	if b == nil {
		b = &pushBatch{}
		s.batch = b
		if !s.pushing {
			s.pushing = true
			s.process.spawn("push", s.flush)
		}
	}
	b.nodes = append(b.nodes, command.NodeUpdates{NodeID: nodeID, Updates: slices.Clone(updates)})
	mine := &signal{}
	b.asks = append(b.asks, mine)
	for !mine.wait(p, time.Second) {
		if s.process.over {
			return drover.Errorf(drover.Unavailable, "connection lost")
		}
	}
	return b.err
}

func (s *server) flush(*proc) {
	for s.batch != nil {
		b := s.batch
		s.batch = nil
		_, _, b.err = s.Propose(s.w.ctx, assignment.Entry(s.store.Snapshot(), s.maker(), b.nodes))
		for _, x := range b.asks {
			x.raise()
		}
	}
	s.pushing = false
}

// pull answers when what is wanted of the node differs from the state at since, or after a while.
func (s *server) pull(p *proc, nodeID string, since uint64) (exchange.Assignment, error) {
	deadline := s.w.now.Add(30 * time.Second)
	for !s.process.over {
		changed := s.store.Watch(store.WatchNodeAllocs, nodeID)
		snap := s.store.Snapshot()
		if snap.Node(nodeID) == nil {
			return exchange.Assignment{}, drover.Errorf(drover.NotFound, "node not found")
		}
		a := assignment.Wanted(snap, nodeID)
		if since == 0 || a.Index > since || since > snap.Index() {
			return a, nil
		}
		if !s.w.now.Before(deadline) {
			a.Index = max(a.Index, since)
			return a, nil
		}
		p.await(deadline.Sub(s.w.now), changed)
	}
	return exchange.Assignment{}, drover.Errorf(drover.Unavailable, "connection refused")
}
