package scheduler

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/rank"
	"github.com/drover-project/drover/internal/control/scheduler/reconcile"
)

// sites are the nodes of one group of a system job: its board, and the run that places on it.
type sites struct {
	*rank.Board

	run     *run
	x       GroupExplanation
	serving map[*drover.Job]*rank.Board // of older versions that are placed
}

// placeSystem handles jobs with one allocation of each group on every node that can run it.
func (r *run) placeSystem() {
	var s *sites
	begin := func(g *drover.TaskGroup) reconcile.Sites {
		s = &sites{
			Board: r.newBoard(r.Job, g, ""), run: r, x: GroupExplanation{Group: g.Name}, serving: map[*drover.Job]*rank.Board{},
		}
		if g.Count != nil && *g.Count == 0 {
			s.Clear()
		}
		return s
	}
	r.reconciler.System(r.allocations(), begin, func(g *drover.TaskGroup, waiting int) {
		r.explain(s.Board, &s.x)
		r.queued[g.Name] += s.x.Failed + waiting
		r.groups = append(r.groups, s.x)
	})
}

// Place puts an allocation of the job's own version on a node.
func (s *sites) Place(i int, p reconcile.Placement) bool { return s.placeOn(s.Board, i, p) }

// PlaceServing puts an allocation of an older version on a node.
func (s *sites) PlaceServing(nodeID string, p reconcile.Placement) bool {
	b := s.serving[p.Job]
	if b == nil {
		b = s.run.board(p.Job, p.Job.Group(s.Group.Name), "")
		s.serving[p.Job] = b
	}
	i := b.Find(nodeID)
	return i >= 0 && s.placeOn(b, i, p)
}

func (s *sites) placeOn(b *rank.Board, i int, p reconcile.Placement) bool {
	if !s.run.affords(b.Group, &s.x) {
		s.x.Failed++
		return false
	}
	if !b.HasRoom(i) {
		s.x.Failed++
		s.run.preempt(b, func(by rank.Preemptor) (string, []*drover.Allocation) { return b.PreemptAt(i, by) })
		return false
	}
	place, ok := b.TakeAt(i)
	if !ok || !s.run.pays(place.Granted, &s.x) {
		s.x.Failed++
		return false
	}
	s.run.add(b.Group, p, place)
	s.x.count(place)
	return true
}
