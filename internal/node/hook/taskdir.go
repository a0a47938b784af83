package hook

import (
	"context"

	"drover"
	"drover/internal/node/taskmachine"
)

// taskDir makes the task's folders.
type taskDir struct{}

func (taskDir) Name() string { return "task_dir" }
func (taskDir) Once() bool   { return false }

func (taskDir) Prestart(_ context.Context, r *Request) error {
	if r.Dir.TaskBuilt(r.Task.Name) {
		return nil
	}
	r.Emit(taskmachine.NewEvent(drover.TaskSetup, "Building Task Directory"))
	return r.Dir.BuildTask(r.Task.Name)
}
