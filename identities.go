package drover

import (
	"fmt"

	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/workload"
)

// AllIdentities returns the task's identities, its default one first if the job says it.
func (t *Task) AllIdentities() []*workload.Identity {
	out := make([]*workload.Identity, 0, len(t.Identities)+1)
	if t.Identity != nil {
		out = append(out, t.Identity)
	}
	for _, w := range t.Identities {
		if w != nil {
			out = append(out, w)
		}
	}
	return out
}

// validateIdentities checks a task's identities: each has a name of its own, and a file of its own inside the allocation.
func (t *Task) validateIdentities(v *validation.Report, at string) {
	names, paths := map[string]bool{}, map[string]string{}
	check := func(at string, w *workload.Identity) {
		w.Validate(v, at)
		if !w.File {
			return
		}
		if other, has := paths[w.Path()]; has {
			v.Addf(at+".Filepath", "%q is that of the identity %q, too", w.Path(), other)
		}
		paths[w.Path()] = w.Name
	}
	if t.Identity != nil {
		v.Check(t.Identity.IsDefault(), at+".Identity.Name", "must be %q, got %q: others are in Identities",
			workload.DefaultIdentity, t.Identity.Name)
		check(at+".Identity", t.Identity)
	}
	for i, w := range t.Identities {
		where := fmt.Sprintf("%s.Identities[%d]", at, i)
		if w == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(!w.IsDefault(), where+".Name", "must be set and not be %q", workload.DefaultIdentity)
		v.Check(!names[w.Name], where+".Name", "%q is that of another identity, too", w.Name)
		names[w.Name] = true
		check(where, w)
	}
}
