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
		r.unfitted(s)
		r.queued[g.Name] += s.x.Failed + waiting
		r.groups = append(r.groups, s.x)
	})
}

// unfitted says that a group has no allocation because every node that was looked at is refused, which is else nowhere to be
// seen. It does not wait: a node that could run it has the job looked at.
func (r *run) unfitted(s *sites) {
	zero := s.Group.Count != nil && *s.Group.Count == 0
	if zero || s.Len() > 0 || s.Metric.NodesFiltered == 0 {
		return
	}
	for a := range r.allocations() {
		if a.TaskGroup == s.Group.Name && a.Job != nil && a.Job.CreateIndex == r.Job.CreateIndex {
			return
		}
	}
	s.x.Metric, s.x.unfit = s.Metric, true
	r.unfit[s.Group.Name] = s.Metric
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
