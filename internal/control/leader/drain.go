package leader

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/tables"
)

// watchDrains moves allocations off draining nodes, and ends the drains of nodes that have none left.
func (l *Leader) watchDrains(ctx context.Context, log Log) {
	for {
		nodes := l.deps.Store.Watch(tables.Nodes, "")
		allocs := l.deps.Store.Watch(tables.Allocs, "")
		s, now, wait := l.deps.Store.Snapshot(), l.deps.Clock.Now(), time.Hour
		draining := false
		for n := range s.Nodes("") {
			if n.DrainStrategy == nil {
				continue
			}
			draining = true
			c, next := DrainStep(s, n, now, l.maker())
			if c != nil {
				if _, _, err := log.Propose(ctx, c); err != nil && ctx.Err() == nil {
					l.deps.Logger.Warn("cannot drain node", "node", n.ID, "error", err)
					wait = min(wait, retryDelay)
				}
				s = l.deps.Store.Snapshot() // what is marked counts for the next node
			}
			wait = min(wait, next)
		}
		if !draining {
			allocs = nil
		}
		if !clock.Await(ctx, l.deps.Clock, wait, nodes, allocs) {
			return
		}
	}
}

// DrainStep returns what is to be done about a draining node now, nil if nothing, and after what time to look again
// if nothing changes.
//
// Services are moved as their migrate block allows; batch jobs and claimed runners may run on until the deadline; system jobs
// go last. At the deadline, or with a negative one at once, everything has to go. Services move to other nodes; batch work that
// is not done by then is not begun anew, unless the drain says so.
func DrainStep(s *store.Snapshot, n *drover.Node, now time.Time, m trigger.Maker) (command.Command, time.Duration) {
	d := n.DrainStrategy
	force := d.Deadline < 0 || (!d.ForceDeadline.IsZero() && !d.ForceDeadline.After(now))
	wait := time.Hour
	if !force && !d.ForceDeadline.IsZero() {
		wait = d.ForceDeadline.Sub(now)
	}
	left, system := onNode(s, n, d)
	if len(left) == 0 && len(system) == 0 {
		return &command.SetDrain{
			NodeID: n.ID, Completed: true, Time: m.Now,
			Event: &drover.NodeEvent{Message: command.DrainComplete, Subsystem: command.DrainEvent, Timestamp: now.UTC()},
		}, wait
	}
	var move []*drover.Allocation
	switch {
	case force:
		move = append(left, system...)
	case len(left) == 0:
		move = system
	default:
		move = movable(s, left)
	}
	move = slices.DeleteFunc(move, marked)
	if len(move) == 0 {
		return nil, wait
	}
	c := &command.TransitionAllocs{Transitions: map[string]drover.DesiredTransition{}, Time: m.Now}
	for _, a := range move {
		t := drover.DesiredTransition{Migrate: new(true)}
		if a.Job != nil && a.Job.EndsByItself() && !d.MoveBatch {
			t.MigrateDisablePlacement = new(true)
		}
		c.Transitions[a.ID] = t
	}
	c.Evals = m.Each(func(yield func(*drover.Job) bool) {
		for _, a := range move {
			j := s.Job(a.Namespace, a.JobID)
			if j == nil {
				j = a.Job
			}
			if j != nil && !yield(j) {
				return
			}
		}
	}, drover.TriggerNodeDrain)
	return c, wait
}

// marked reports whether the allocation was told to leave already, so that a drain does not tell it twice.
func marked(a *drover.Allocation) bool {
	return a.ServerTerminal() || (a.DesiredTransition.Migrate != nil && *a.DesiredTransition.Migrate)
}

// onNode lists what has to leave the node: system jobs apart, or not at all.
func onNode(s *store.Snapshot, n *drover.Node, d *drover.DrainStrategy) (left, system []*drover.Allocation) {
	for a := range s.UnfinishedByNode(n.ID) {
		switch {
		case a.Job != nil && a.Job.Type == drover.JobTypeSystem:
			if !d.IgnoreSystemJobs {
				system = append(system, a)
			}
		default:
			left = append(left, a)
		}
	}
	return left, system
}

// groupKey names a group of a job: the migrate block bounds how many of its allocations move at once.
type groupKey struct {
	job   drover.NamespacedID
	group string
}

// movable returns what may leave now, before the deadline.
func movable(s *store.Snapshot, left []*drover.Allocation) []*drover.Allocation {
	groups := map[groupKey][]*drover.Allocation{}
	var order []groupKey
	var out []*drover.Allocation
	for _, a := range left {
		if a.Job == nil {
			out = append(out, a)
			continue
		}
		g := a.Job.Group(a.TaskGroup)
		switch {
		case a.Job.EndsByItself() || a.Claim != nil:
		case g == nil || g.Pool != nil:
			out = append(out, a)
		default:
			key := groupKey{drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}, a.TaskGroup}
			if groups[key] == nil {
				order = append(order, key)
			}
			groups[key] = append(groups[key], a)
		}
	}
	for _, key := range order {
		here := slices.DeleteFunc(groups[key], marked)
		out = append(out, here[:min(len(here), allowance(s, key, here))]...)
	}
	return out
}

// allowance returns how many of a service group may be taken away now: max_parallel less what is already missing. What
// took the place of others counts once its health is known, be it bad: a drain waits until what it moved serves again,
// and not for what never will.
func allowance(s *store.Snapshot, key groupKey, here []*drover.Allocation) int {
	if len(here) == 0 {
		return 0
	}
	g := here[0].Job.Group(key.group)
	if j := s.Job(key.job.Namespace, key.job.ID); j != nil && j.Group(key.group) != nil {
		g = j.Group(key.group)
	}
	parallel := 1
	if g.Migrate != nil && g.Migrate.MaxParallel != nil {
		parallel = *g.Migrate.MaxParallel
	}
	judged, running := 0, 0
	for a := range s.AllocationsByJob(key.job.Namespace, key.job.ID) {
		if a.TaskGroup != key.group || marked(a) || a.ClientStatus != drover.AllocClientRunning {
			continue
		}
		running++
		if a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil {
			judged++
		}
	}
	count := 1
	if g.Count != nil {
		count = *g.Count
	}
	if running == 0 {
		return parallel // nothing to protect
	}
	return max(0, judged-(count-parallel))
}

// Draining returns the nodes under drain, sorted: for metrics.
func (l *Leader) Draining() []string {
	ids := map[string]struct{}{}
	for n := range l.deps.Store.Snapshot().Nodes("") {
		if n.DrainStrategy != nil {
			ids[n.ID] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
