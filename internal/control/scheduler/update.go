package scheduler

import (
	"reflect"

	"github.com/drover-project/drover"
)

// updateKind says what a newer job version means for an allocation.
type updateKind uint8

const (
	updateNone updateKind = iota
	updateInPlace
	updateDestructive
)

type updateKey struct {
	group                string
	createIndex, version uint64
}

// updateOf compares the version that an allocation runs with the job's.
func (r *run) updateOf(a *drover.Allocation, g *drover.TaskGroup) updateKind {
	if a.Job == nil || a.Job == r.job || a.Job.Version == r.job.Version && a.Job.CreateIndex == r.job.CreateIndex {
		return updateNone
	}
	kind := r.changeOf(a.Job, g)
	if kind == updateInPlace && !r.mayStay(r.node(a.NodeID), g) {
		return updateDestructive
	}
	return kind
}

// takesOver reports whether an allocation of an older version that is placed on the node runs the job's own version
// instead: the next evaluation would update it in place, and nothing makes that evaluation.
func (r *run) takesOver(older *drover.Job, group string, n *drover.Node) bool {
	g := r.job.Group(group)
	return r.changeOf(older, g) == updateInPlace && r.mayStay(n, g)
}

// changeOf compares another version's group with the job's.
func (r *run) changeOf(j *drover.Job, g *drover.TaskGroup) updateKind {
	key := updateKey{g.Name, j.CreateIndex, j.Version}
	kind, seen := r.updateKinds[key]
	if !seen {
		kind = updateDestructive
		if old := j.Group(g.Name); old != nil && sameWork(j, old, r.job, g) {
			kind = updateInPlace
		}
		r.updateKinds[key] = kind
	}
	return kind
}

// mayStay reports whether the job's current constraints allow the node that an allocation is on.
func (r *run) mayStay(n *drover.Node, g *drover.TaskGroup) bool {
	if n == nil || !matchesAny(r.job.Datacenters, n.Datacenter) || !inPool(r.job, n) {
		return false
	}
	reason := newFeasibility(r.matcher, r.job, g, 0).check(&candidate{node: n, class: -1})
	return reason == ""
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

// alike is deep equality for which an empty map or list is as good as none, and 1 equals 1.0: values that travelled
// through JSON or the log differ in just that.
func alike(a, b reflect.Value) bool {
	for a.IsValid() && (a.Kind() == reflect.Interface || a.Kind() == reflect.Pointer) && !a.IsNil() {
		a = a.Elem()
	}
	for b.IsValid() && (b.Kind() == reflect.Interface || b.Kind() == reflect.Pointer) && !b.IsNil() {
		b = b.Elem()
	}
	if hollow(a) || hollow(b) {
		return hollow(a) && hollow(b)
	}
	if a.CanConvert(floatType) && b.CanConvert(floatType) {
		return a.Convert(floatType).Float() == b.Convert(floatType).Float()
	}
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return a.Type() == b.Type()
	case reflect.Map:
		return alikeMaps(a, b)
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !alike(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

var floatType = reflect.TypeFor[float64]()

func alikeMaps(a, b reflect.Value) bool {
	if a.Len() != b.Len() || a.Type().Key() != b.Type().Key() {
		return false
	}
	for it := a.MapRange(); it.Next(); {
		other := b.MapIndex(it.Key())
		if !other.IsValid() || !alike(it.Value(), other) {
			return false
		}
	}
	return true
}

// hollow reports whether a value is absent, or an empty map or list.
func hollow(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	}
	return false
}
