package hook

import (
	"context"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// taskDir makes the task's folders.
type taskDir struct{}

func (taskDir) Name() string { return "task_dir" }

// Once is false: the tmpfs with the secrets is not there any more after the machine's restart.
func (taskDir) Once() bool { return false }

// Prestart makes what is missing of the task's folders, lets the task's user reach them, and mounts the folder for
// secrets. A task that needs no folders gets none, unless somebody who asked for its files has made them already.
func (taskDir) Prestart(_ context.Context, r *Request) error {
	if lean(r.Driver, r.Group, r.Task) && !r.Dir.Exists() {
		return nil
	}
	if !r.Dir.TaskBuilt(r.Task.Name) {
		r.Emit(taskmachine.NewEvent(drover.TaskSetup, "Building Task Directory"))
		if err := r.Dir.BuildTask(r.Task.Name); err != nil {
			return err
		}
	}
	if w, ok := r.Driver.(Walker); ok {
		uid, err := w.WalksAs(r.Task)
		if err != nil {
			return &Failure{Err: err}
		}
		if err := r.Dir.Admit(uid); err != nil {
			return err
		}
	}
	mb := 0
	if r.Task.Resources != nil {
		mb = r.Task.Resources.SecretsMB
	}
	return r.Dir.MountSecrets(r.Task.Name, mb, slices.Contains(shifting, r.Task.Driver))
}

// shifting are the drivers whose tasks see their folders with other owners than the machine does.
var shifting = []string{"sandbox", "exec", "java", "qemu"}

// Walker is an optional power of a driver whose tasks come to their folders by path, as users of the machine: it says as which.
type Walker interface {
	WalksAs(task *drover.Task) (uid uint32, err error)
}

// Lean is an optional power of a driver: it says which of its tasks need no folders, because they are no processes, or
// have all their files in memory. Ten folders each would be most of their cost; who asks for the files makes them.
type Lean interface {
	NeedsFolders(group *drover.TaskGroup, task *drover.Task) bool
}

// lean reports whether nothing will look for the task's folders.
func lean(d driver.Driver, g *drover.TaskGroup, t *drover.Task) bool {
	l, ok := d.(Lean)
	_, tokens := exposed("", t)
	return ok && len(tokens) == 0 && len(t.Artifacts) == 0 && len(t.Templates) == 0 && t.DispatchPayload == nil && !l.NeedsFolders(g, t)
}

// NeedsFolders reports whether a new allocation's folders have to be made before its tasks start.
func NeedsFolders(alloc *drover.Allocation, group *drover.TaskGroup, drivers map[string]driver.Driver) bool {
	if alloc.PreviousAllocation != "" {
		return true // there may be data to take over
	}
	for _, t := range group.Tasks {
		if !lean(drivers[t.Driver], group, t) {
			return true
		}
	}
	return false
}
