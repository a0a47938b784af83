package drover

import (
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// The bounds of what one job holds. Nomad has none; no job that people write comes near them, and without them one
// request keeps the server busy for seconds each time it looks at the job.
const (
	maxGroups    = 1000 // of a job
	maxTasks     = 1000 // of a job, over all its groups
	maxParts     = 1000 // of a list in a job, a group or a task
	maxNameBytes = 255  // of a group's or a task's name: what a file may be called
)

// bounded reports whether the job is small enough to be looked at more closely, and says what is too much if not.
func (j *Job) bounded(v *validation.Report) bool {
	before := v.Len()
	v.Check(len(j.TaskGroups) <= maxGroups, "job.TaskGroups", "a job has at most %d groups, got %d", maxGroups, len(j.TaskGroups))
	few := func(path string, n int) { v.Check(n <= maxParts, path, "at most %d of them, got %d", maxParts, n) }
	few("job.Datacenters", len(j.Datacenters))
	few("job.Meta", len(j.Meta))
	few("job.Constraints", len(j.Constraints))
	few("job.Affinities", len(j.Affinities))
	few("job.Spreads", len(j.Spreads))
	if v.Len() > before {
		return false
	}
	tasks := 0
	for i, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		at := "job.group[" + validation.NameOr(g.Name, i) + "]."
		tasks += len(g.Tasks)
		few(at+"Meta", len(g.Meta))
		few(at+"Constraints", len(g.Constraints))
		few(at+"Affinities", len(g.Affinities))
		few(at+"Spreads", len(g.Spreads))
		few(at+"Volumes", len(g.Volumes))
		few(at+"Services", len(g.Services)+service.ChecksOf(g.Services))
		few(at+"Networks", network.Ports(g.Networks))
	}
	v.Check(tasks <= maxTasks, "job", "a job has at most %d tasks, got %d", maxTasks, tasks)
	if v.Len() > before {
		return false
	}
	for i, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for k, t := range g.Tasks {
			if t == nil {
				continue
			}
			at := "job.group[" + validation.NameOr(g.Name, i) + "].task[" + validation.NameOr(t.Name, k) + "]."
			few(at+"Env", len(t.Env))
			few(at+"Meta", len(t.Meta))
			few(at+"Constraints", len(t.Constraints))
			few(at+"Affinities", len(t.Affinities))
			few(at+"Services", len(t.Services)+service.ChecksOf(t.Services))
			few(at+"Artifacts", len(t.Artifacts))
			few(at+"Templates", len(t.Templates))
			few(at+"VolumeMounts", len(t.VolumeMounts))
		}
	}
	return v.Len() == before
}
