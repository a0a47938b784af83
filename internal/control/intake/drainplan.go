package intake

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

// Bounds of plans of drains, which only tell: each job of a node is scheduled for one.
const (
	maxDrainPlans = 2                // at a time; others wait
	drainPlanTime = 10 * time.Second // of one, with its wait; whoever asked is gone by then, or should be told
)

// drained is the state as if a node were drained, and what was planned so far were placed.
type drained struct {
	*store.Snapshot
	node   *drover.Node
	moving map[string]*drover.Allocation   // of that node, by id: they are to leave
	placed map[string][]*drover.Allocation // by node
}

// Node returns the node in question as one that takes no work.
func (d *drained) Node(id string) *drover.Node {
	if id == d.node.ID {
		return d.node
	}
	return d.Snapshot.Node(id)
}

// Nodes yields nodes as Node returns them.
func (d *drained) Nodes(prefix string) iter.Seq[*drover.Node] {
	return func(yield func(*drover.Node) bool) {
		for n := range d.Snapshot.Nodes(prefix) {
			if n.ID == d.node.ID {
				n = d.node
			}
			if !yield(n) {
				return
			}
		}
	}
}

// Used is what allocations hold, with what was planned.
func (d *drained) Used(nodeID string) drover.Capacity {
	return d.Snapshot.Used(nodeID).Add(d.planned(nodeID))
}

func (d *drained) planned(nodeID string) (held drover.Capacity) {
	for _, a := range d.placed[nodeID] {
		held = held.Add(a.AllocatedResources.Used())
	}
	return held
}

// NodesUsed yields nodes as Node returns them, with Used of each.
func (d *drained) NodesUsed() iter.Seq2[*drover.Node, drover.Capacity] {
	return func(yield func(*drover.Node, drover.Capacity) bool) {
		for n, used := range d.Snapshot.NodesUsed() {
			if n.ID == d.node.ID {
				n = d.node
			}
			if !yield(n, used.Add(d.planned(n.ID))) {
				return
			}
		}
	}
}

// told yields allocations as they would be told to leave, then those that were planned.
func (d *drained) told(all iter.Seq[*drover.Allocation], planned []*drover.Allocation) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for a := range all {
			if moving := d.moving[a.ID]; moving != nil {
				a = moving
			}
			if !yield(a) {
				return
			}
		}
		for _, a := range planned {
			if !yield(a) {
				return
			}
		}
	}
}

// AllocationsByNode yields the node's allocations.
func (d *drained) AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation] {
	return d.told(d.Snapshot.AllocationsByNode(nodeID), d.placed[nodeID])
}

// UnfinishedByNode yields the node's allocations that have not ended.
func (d *drained) UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation] {
	return d.told(d.Snapshot.UnfinishedByNode(nodeID), d.placed[nodeID])
}

// AllocationsByJob yields the job's allocations. Each job is planned once, so that what was planned is of others.
func (d *drained) AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation] {
	return d.told(d.Snapshot.AllocationsByJob(namespace, id), nil)
}

// ActiveAllocationsByJob is AllocationsByJob without those that both sides are done with.
func (d *drained) ActiveAllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation] {
	return d.told(d.Snapshot.ActiveAllocationsByJob(namespace, id), nil)
}

// PlanDrain says what a drain of the node would do with each of its allocations, as things are now, and changes nothing. The scheduler
// decides as it would; jobs of a higher priority come first. It ends early with the context. Errors: NotFound, Exhausted if it takes too
// long, Canceled.
func (in *Intake) PlanDrain(ctx context.Context, nodeID string, spec drover.DrainSpec) (drover.DrainPlan, error) {
	planCtx, cancel := in.deps.Clock.WithTimeout(ctx, drainPlanTime)
	defer cancel()
	select {
	case in.drains <- struct{}{}:
		defer func() { <-in.drains }()
	case <-planCtx.Done():
		return drover.DrainPlan{}, undone(ctx, nodeID)
	}
	s := in.deps.Store.Snapshot()
	node := s.Node(nodeID)
	if node == nil {
		return drover.DrainPlan{}, drover.Errorf(drover.NotFound, "node %q not found", nodeID)
	}
	out := drover.DrainPlan{NodeID: node.ID, NodeName: node.Name, Moves: []drover.DrainMove{}}
	as := *node
	as.SchedulingEligibility, as.DrainStrategy, as.Drain = drover.NodeIneligible, &drover.DrainStrategy{DrainSpec: spec}, true
	d := &drained{Snapshot: s, node: &as, moving: map[string]*drover.Allocation{}, placed: map[string][]*drover.Allocation{}}
	jobs := map[*drover.Job][]*drover.Allocation{}
	for a := range s.UnfinishedByNode(nodeID) {
		j := s.Job(a.Namespace, a.JobID)
		if j == nil {
			j = a.Job
		}
		if j == nil || a.ServerTerminal() {
			continue // it is on its way out
		}
		jobs[j] = append(jobs[j], a)
		told := *a
		told.DesiredTransition.Migrate = new(true)
		if j.EndsByItself() && !spec.MoveBatch {
			told.DesiredTransition.MigrateDisablePlacement = new(true)
		}
		if j.Type != drover.JobTypeSystem || !spec.IgnoreSystemJobs {
			d.moving[a.ID] = &told
		}
	}
	order := slices.SortedFunc(maps.Keys(jobs), func(a, b *drover.Job) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
	for _, j := range order {
		if planCtx.Err() != nil {
			return drover.DrainPlan{}, undone(ctx, nodeID)
		}
		out.Moves = append(out.Moves, in.planLeaving(d, j, jobs[j], spec)...)
	}
	slices.SortFunc(out.Moves, func(a, b drover.DrainMove) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.AllocID, b.AllocID))
	})
	return out, nil
}

// undone is why a plan of a drain was not made, of the context of who asked for it.
func undone(ctx context.Context, nodeID string) error {
	if err := ctx.Err(); err != nil {
		return drover.Errorf(drover.Canceled, "planning the drain of node %s: %w", nodeID, err)
	}
	return drover.Errorf(drover.Exhausted, "planning the drain of node %s takes longer than %v: the server is busy, try again later",
		nodeID, drainPlanTime)
}

// planLeaving says what becomes of a job's allocations on the node.
func (in *Intake) planLeaving(d *drained, j *drover.Job, all []*drover.Allocation, spec drover.DrainSpec) []drover.DrainMove {
	eval := in.maker().Job(j, drover.TriggerNodeDrain)
	eval.SnapshotIndex = d.Index()
	plan := scheduler.Schedule(scheduler.Input{Eval: eval, Snapshot: d, Now: in.now(), Seed: id.Seed(eval.ID)})
	next := map[string]*drover.Allocation{} // by the id of the one before, or else of its group
	spare := map[string][]*drover.Allocation{}
	for _, nodeID := range slices.Sorted(maps.Keys(plan.Plan.NodeAllocation)) {
		for _, a := range plan.Plan.NodeAllocation[nodeID] {
			if d.Allocation(a.ID) != nil {
				continue // it is updated where it is
			}
			d.placed[nodeID] = append(d.placed[nodeID], a)
			if a.PreviousAllocation != "" {
				next[a.PreviousAllocation] = a
			} else {
				spare[a.TaskGroup] = append(spare[a.TaskGroup], a)
			}
		}
	}
	moves := make([]drover.DrainMove, 0, len(all))
	for _, a := range all {
		m := drover.DrainMove{
			AllocID: a.ID, Name: a.Name, Namespace: a.Namespace, JobID: a.JobID, TaskGroup: a.TaskGroup, Fate: drover.DrainWaits,
		}
		to := next[a.ID]
		if list := spare[a.TaskGroup]; to == nil && len(list) > 0 {
			to, spare[a.TaskGroup] = list[0], list[1:]
		}
		switch {
		case j.Type == drover.JobTypeSystem && spec.IgnoreSystemJobs:
			m.Fate = drover.DrainStays
		case j.Type == drover.JobTypeSystem, j.EndsByItself() && !spec.MoveBatch:
			m.Fate = drover.DrainEnds
		case to != nil:
			m.Fate, m.ToNodeID, m.ToNodeName = drover.DrainMoves, to.NodeID, to.NodeName
		case a.Claim != nil:
			m.Fate = drover.DrainEnds
		default:
			m.Why = plan.Eval.FailedTGAllocs[a.TaskGroup].Reasons()
		}
		moves = append(moves, m)
	}
	return moves
}
