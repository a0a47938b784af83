package simulator

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// halfDie lets a machine half die: its agent reports, but nothing starts or ends there any more. Half a minute later its
// run probe fails, and control gives its work to others.
func (s *Sim) halfDie(n *node) {
	if !n.up || n.half {
		return
	}
	n.half = true
	s.free.move(n)
	for _, t := range n.tasks { // what would have ended does not
		s.tasks[t].run++
	}
	s.in(30*time.Second, func() {
		if !n.up {
			return
		}
		n.broken = true
		for _, t := range append([]int32(nil), n.tasks...) {
			s.leave(t, n)
			s.tasks[t].readyAt = s.now
			s.result.Redone++
			if o := s.free.best(s.tasks[t].Each); o != nil {
				s.begin(t, o)
			} else {
				s.wait(t)
			}
		}
		s.report(n)
		s.decideIn(s.cfg.Coalesce)
	})
}

// ghost is an agent that was replaced, or a copy of the machine: it shows the same token and tells of work that nobody
// gave it. It must be refused, and what it tells must change nothing.
func (s *Sim) ghost(n *node) {
	if !n.up || s.nodes[n.intent] != n {
		return
	}
	before, known := s.core.Instance(n.intent)
	if !known || before.NodeID != n.id {
		return // not registered again since a restart: the first one that calls is believed
	}
	id := n.id + "-ghost"
	s.must(drover.CodeOf(s.core.Registered(s.time(), n.intent, id)) == drover.Conflict, "a second agent of %s is let in", n.intent)
	s.core.Reported(s.time(), id, pool.Report{Ready: true, Work: 7, Used: drover.Capacity{CPU: 7}})
	s.core.Lost(s.time(), id, 7)
	after, known := s.core.Instance(n.intent)
	s.must(known && after.Work == before.Work && after.State == before.State && after.LostAt.Equal(before.LostAt),
		"what a second agent of %s tells is believed", n.intent)
}
