package hook

import (
	"context"

	"github.com/drover-project/drover"
)

// validate asks the driver whether the interpolated configuration is right.
type validate struct{}

func (validate) Name() string { return "validate" }
func (validate) Once() bool   { return false }

// Prestart checks a copy of the task, with its variables replaced. Only the node knows their values, so control could
// not check it at registration. A failure is not recoverable: the same job would fail again.
func (validate) Prestart(_ context.Context, r *Request) error {
	task := *r.Task
	task.Config = r.Env.ReplaceConfig(task.Config)
	if err := r.Env.Err(); err != nil {
		return &Failure{Type: drover.TaskFailedValidation, Err: err}
	}
	if r.Group.Pool != nil && task.Config["command"] == nil {
		return nil // a warm runner needs no command, which Validate cannot know; Start looks at the rest
	}
	if err := r.Driver.Validate(&task); err != nil {
		return &Failure{Type: drover.TaskFailedValidation, Err: err}
	}
	return nil
}
