package drover

import "fmt"

// IgnoredBlocks says what of the job is stored and does nothing here, a sentence each. Who registers it is told: a task that
// waits for a token or a name that never comes says nothing of why.
func (j *Job) IgnoredBlocks() []string {
	var out []string
	services := func(where string, list []*Service) {
		if len(list) > 0 {
			out = append(out, fmt.Sprintf("%s: service blocks are stored, but services are not registered or checked", where))
		}
	}
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		services(fmt.Sprintf("group %q", g.Name), g.Services)
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			where := fmt.Sprintf("task %q", t.Name)
			services(where, t.Services)
			if len(t.Identities) > 0 || t.Identity != nil {
				out = append(out, where+": identity blocks are stored, but no tokens are made")
			}
		}
	}
	return out
}
