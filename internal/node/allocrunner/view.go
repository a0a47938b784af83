package allocrunner

import (
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/driver"
)

// What others ask of a running allocation.

// View returns what is known. Any goroutine may call it.
func (r *Runner) View() View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view
}

// Group returns the allocation's group, as the newest update in place has it. Any goroutine may call it.
func (r *Runner) Group() *drover.TaskGroup {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spec
}

// TaskNames lists the names of the group's tasks, in the job's order.
func (r *Runner) TaskNames() []string {
	tasks := r.Group().Tasks
	names := make([]string, 0, len(tasks))
	for _, t := range tasks {
		names = append(names, t.Name)
	}
	return names
}

// Dir returns the allocation's folder.
func (r *Runner) Dir() allocdir.Dir { return r.dir }

// Handle returns a running task. task "" means the only, the leader, or the first main one. Errors: NotFound (no such
// task), Gone (it has ended), Conflict (it does not run yet).
func (r *Runner) Handle(task string) (driver.Handle, error) {
	if task == "" {
		task = r.DefaultTask()
	}
	t := r.tasks[task]
	if t == nil {
		return nil, drover.Errorf(drover.NotFound, "allocation %s has no task %q; it has %q", r.id, task, slices.Sorted(maps.Keys(r.tasks)))
	}
	if h := t.Handle(); h != nil {
		return h, nil
	}
	if v := r.View(); v.Ended() {
		return nil, drover.Errorf(drover.Gone, "allocation %s has ended", r.id)
	}
	return nil, drover.Errorf(drover.Conflict, "task %q of allocation %s is not running", task, r.id)
}

// Handles returns the running tasks.
func (r *Runner) Handles() map[string]driver.Handle {
	out := map[string]driver.Handle{}
	for name, t := range r.tasks {
		if h := t.Handle(); h != nil {
			out[name] = h
		}
	}
	return out
}

// DefaultTask is the one meant when none is named.
func (r *Runner) DefaultTask() string {
	name, group := "", r.Group()
	for _, t := range group.Tasks {
		if t.Leader {
			return t.Name
		}
		if name == "" && stageOf(t) == stageMain {
			name = t.Name
		}
	}
	if name == "" {
		name = group.Tasks[0].Name
	}
	return name
}
