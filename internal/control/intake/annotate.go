package intake

import (
	"cmp"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/jobdiff"
)

// annotate writes into the difference what the scheduler would do about each group, in Nomad's words. Groups that do
// not differ are listed too if something would happen to them or be left as it is.
func annotate(d *jobdiff.Job, a *drover.PlanAnnotations) {
	if a == nil {
		return
	}
	for name, u := range a.DesiredTGUpdates {
		if u == nil {
			continue
		}
		at := slices.IndexFunc(d.TaskGroups, func(g *jobdiff.Group) bool { return g.Name == name })
		if at < 0 {
			d.TaskGroups = append(d.TaskGroups, &jobdiff.Group{Type: jobdiff.None, Name: name})
			at = len(d.TaskGroups) - 1
		}
		d.TaskGroups[at].Updates = updates(u)
	}
	slices.SortFunc(d.TaskGroups, func(x, y *jobdiff.Group) int { return cmp.Compare(x.Name, y.Name) })
}

// updates counts the kinds of changes under the names that Nomad's command line prints. Kinds without any are left out.
func updates(u *drover.DesiredUpdates) map[string]uint64 {
	m := map[string]uint64{}
	for _, x := range []struct {
		name  string
		count uint64
	}{
		{"ignore", u.Ignore},
		{"create", u.Place},
		{"migrate", u.Migrate},
		{"destroy", u.Stop},
		{"in-place update", u.InPlaceUpdate},
		{"create/destroy update", u.DestructiveUpdate},
		{"canary", u.Canary},
		{"preemptions", u.Preemptions},
	} {
		if x.count > 0 {
			m[x.name] = x.count
		}
	}
	return m
}
