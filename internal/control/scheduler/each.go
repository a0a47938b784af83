package scheduler

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/scheduler/rank"
	"github.com/drover-project/drover/internal/control/scheduler/reconcile"
)

// placeEach is placeOwn for a group whose allocations have different volumes: each has a board of its own, and that there is no
// node for one says nothing of the others. Warm pools are no such groups.
func (r *run) placeEach(own []reconcile.Placement, c *reconcile.Changes, x *GroupExplanation) {
	var last *rank.Board // of the last failure, which is explained
	try := func(name string, place func(*rank.Board)) {
		b := r.boardOf(r.Job, c.Group, name)
		b.Penalise(c.Avoid, true)
		failed := x.Failed
		if place(b); x.Failed > failed || last == nil {
			last = b
		}
	}
	for _, p := range own {
		try(p.Name, func(b *rank.Board) { r.placeOne(b, p, false, x) })
	}
	for _, a := range c.Destructive {
		try(a.Name, func(b *rank.Board) {
			failed := x.Failed
			if r.replaceOne(b, a, x); x.Failed == failed {
				r.kept = slices.DeleteFunc(slices.Clone(r.kept), func(k *drover.Allocation) bool { return k == a })
			}
		})
	}
	r.explain(last, x)
}

// boardOf is newBoard for the allocation of the name, where the group's allocations have different volumes.
func (r *run) boardOf(version *drover.Job, g *drover.TaskGroup, name string) *rank.Board {
	return r.newBoard(version, feasible.Single(g, (&drover.Allocation{Name: name}).Index()), name)
}
