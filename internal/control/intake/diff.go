package intake

import (
	"maps"
	"reflect"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/jobdiff"
)

// serverFields are no part of what a user specifies.
var serverFields = map[string]bool{
	"Status": true, "StatusDescription": true, "Stable": true, "Version": true, "SubmitTime": true, "CreateIndex": true,
	"ModifyIndex": true, "JobModifyIndex": true, "VersionTag": true, "NomadTokenID": true, "ParentID": true,
	"Dispatched": true, "DispatchIdempotencyToken": true, "Payload": true,
}

// Diff compares two versions of a job, either of which may be nil, in Nomad's shape.
func Diff(old, now *drover.Job) *jobdiff.Job {
	d := &jobdiff.Job{Type: kindOf(old == nil, now == nil)}
	if old == nil && now == nil {
		return d
	}
	before, after := orEmpty(old), orEmpty(now)
	d.ID = after.ID
	if now == nil {
		d.ID = before.ID
	}
	skip := maps.Clone(serverFields)
	// Groups are compared below, by their names and not by their places.
	skip["TaskGroups"] = true
	d.Fields, d.Objects = structDiff(valueOf(old), valueOf(now), skip)
	for _, p := range pairs(before.TaskGroups, after.TaskGroups, func(g *drover.TaskGroup) string { return g.Name }) {
		if g := groupDiff(p.name, p.old, p.now); g.Type != jobdiff.None {
			d.TaskGroups = append(d.TaskGroups, g)
		}
	}
	if d.Type == jobdiff.Edited && len(d.Fields)+len(d.Objects)+len(d.TaskGroups) == 0 {
		d.Type = jobdiff.None
	}
	return d
}

// sameSpec reports whether a user would see no difference between two versions. Fields that only the server sets do not
// count.
func sameSpec(a, b *drover.Job) bool { return Diff(a, b).Type == jobdiff.None }

// groupDiff compares two groups of the same name, either of which may be nil. The type is None if nothing differs.
func groupDiff(name string, old, now *drover.TaskGroup) *jobdiff.Group {
	d := &jobdiff.Group{Type: kindOf(old == nil, now == nil), Name: name}
	before, after := orEmpty(old), orEmpty(now)
	d.Fields, d.Objects = structDiff(valueOf(old), valueOf(now), map[string]bool{"Tasks": true})
	for _, p := range pairs(before.Tasks, after.Tasks, func(t *drover.Task) string { return t.Name }) {
		if t := taskDiff(p.name, p.old, p.now); t.Type != jobdiff.None {
			d.Tasks = append(d.Tasks, t)
		}
	}
	if d.Type == jobdiff.Edited && len(d.Fields)+len(d.Objects)+len(d.Tasks) == 0 {
		d.Type = jobdiff.None
	}
	return d
}

// taskDiff compares two tasks of the same name, either of which may be nil. The type is None if nothing differs.
func taskDiff(name string, old, now *drover.Task) *jobdiff.Task {
	d := &jobdiff.Task{Type: kindOf(old == nil, now == nil), Name: name}
	d.Fields, d.Objects = structDiff(valueOf(old), valueOf(now), nil)
	if d.Type == jobdiff.Edited && len(d.Fields)+len(d.Objects) == 0 {
		d.Type = jobdiff.None
	}
	return d
}

// valueOf returns what p points to, the invalid value for nil.
func valueOf[T any](p *T) reflect.Value { return reflect.ValueOf(p).Elem() }

// orEmpty returns v, or a zero value in place of nil, so that its lists can be read in both cases.
func orEmpty[T any](v *T) *T {
	if v == nil {
		return new(T)
	}
	return v
}

// kindOf returns the kind of a difference; Edited may turn out to be None.
func kindOf(noOld, noNow bool) string {
	switch {
	case noOld && noNow:
		return jobdiff.None
	case noOld:
		return jobdiff.Added
	case noNow:
		return jobdiff.Deleted
	}
	return jobdiff.Edited
}

// pair holds what two lists have under one name. One of both is nil if only the other list has it.
type pair[T any] struct {
	name     string
	old, now *T
}

// pairs matches two lists by name; the result is sorted by name.
func pairs[T any](old, now []*T, name func(*T) string) []pair[T] {
	m := map[string]*pair[T]{}
	at := func(v *T) *pair[T] {
		p := m[name(v)]
		if p == nil {
			p = &pair[T]{name: name(v)}
			m[p.name] = p
		}
		return p
	}
	for _, v := range old {
		at(v).old = v
	}
	for _, v := range now {
		at(v).now = v
	}
	out := make([]pair[T], 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, *m[k])
	}
	return out
}
