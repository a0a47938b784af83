package reconcile

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
)

// updateKind says what a newer job version means for an allocation.
type updateKind uint8

const (
	updateNone updateKind = iota
	updateInPlace
	updateDestructive
)

// updateKey names a group of a version, for which the comparison with the job is made once.
type updateKey struct {
	group                string
	createIndex, version uint64
}

// updateOf compares the version that an allocation runs with the job's.
func (r *Reconciler) updateOf(a *drover.Allocation, g *drover.TaskGroup) updateKind {
	if a.Job == nil || a.Job == r.Job || a.Job.Version == r.Job.Version && a.Job.CreateIndex == r.Job.CreateIndex {
		return updateNone
	}
	kind := r.changeOf(a.Job, g)
	if kind == updateInPlace && !r.mayStay(a, g) {
		return updateDestructive
	}
	return kind
}

// takesOver reports whether an allocation of an older version that is placed on the node runs the job's own version instead.
// The next evaluation would update it in place, and nothing makes that evaluation.
func (r *Reconciler) takesOver(older *drover.Job, a *drover.Allocation, n *drover.Node) bool {
	g := r.Job.Group(a.TaskGroup)
	return r.changeOf(older, g) == updateInPlace &&
		feasible.MayStay(r.matcher, feasible.Volumes{Get: r.state.HostVolume}, r.Job, g, a.Index(), n)
}

// changeOf compares another version's group with the job's.
func (r *Reconciler) changeOf(j *drover.Job, g *drover.TaskGroup) updateKind {
	key := updateKey{g.Name, j.CreateIndex, j.Version}
	kind, seen := r.updateKinds[key]
	if !seen {
		kind = updateDestructive
		if old := j.Group(g.Name); old != nil && sameWork(j, old, r.Job, g) {
			kind = updateInPlace
		}
		r.updateKinds[key] = kind
	}
	return kind
}

// mayStay reports whether the job's current constraints allow the node that an allocation is on.
func (r *Reconciler) mayStay(a *drover.Allocation, g *drover.TaskGroup) bool {
	return feasible.MayStay(r.matcher, feasible.Volumes{Get: r.state.HostVolume}, r.Job, g, a.Index(), r.Node(a.NodeID))
}

// sameWork reports whether both specifications run the same: what differs can be taken over by a running allocation.
func sameWork(oldJob *drover.Job, oldGroup *drover.TaskGroup, newJob *drover.Job, newGroup *drover.TaskGroup) bool {
	return alike(reflect.ValueOf(oldJob.Meta), reflect.ValueOf(newJob.Meta)) &&
		alike(reflect.ValueOf(work(oldGroup)), reflect.ValueOf(work(newGroup)))
}

// work is a copy of the group without what concerns only placement and policy.
func work(g *drover.TaskGroup) *drover.TaskGroup {
	w := &drover.TaskGroup{
		Name: g.Name, Volumes: g.Volumes, EphemeralDisk: g.EphemeralDisk, Networks: g.Networks, Meta: g.Meta,
	}
	for _, t := range g.Tasks {
		c := new(*t)
		c.Constraints, c.Affinities, c.RestartPolicy, c.KillTimeout = nil, nil, nil, nil
		c.ShutdownDelay, c.Services, c.ScalingPolicies = 0, nil, nil
		w.Tasks = append(w.Tasks, c)
	}
	return w
}

// idleFirst orders what is to be replaced by the new version: first what serves nobody anyway, then what was not found healthy
// yet, the newest of it first, and what serves last. So no more than max_parallel of what should serve does not because of a
// roll-out, even when some of it did not before.
func idleFirst(destructive []*drover.Allocation) []*drover.Allocation {
	out := slices.Clone(destructive)
	slices.SortStableFunc(out, func(x, y *drover.Allocation) int {
		serves := serviceOf(x)
		if c := cmp.Compare(serves, serviceOf(y)); c != 0 || serves == servesWell {
			return c
		}
		return cmp.Compare(y.CreateIndex, x.CreateIndex)
	})
	return out
}

// service says how well an allocation serves.
type service uint8

const (
	servesNot service = iota
	servesMaybe
	servesWell
)

// serviceOf says how well an allocation serves as far as is known. What belongs to no deployment serves when it runs.
func serviceOf(a *drover.Allocation) service {
	switch {
	case a.ClientStatus != drover.AllocClientRunning || a.DeploymentStatus.IsUnhealthy():
		return servesNot
	case a.DeploymentID != "" && !a.DeploymentStatus.IsHealthy():
		return servesMaybe
	}
	return servesWell
}
