package hook

import (
	"context"

	"drover"
)

// validate asks the driver whether the interpolated configuration is right.
type validate struct{}

func (validate) Name() string { return "validate" }
func (validate) Once() bool   { return false }

func (validate) Prestart(_ context.Context, r *Request) error {
	task := *r.Task
	task.Config = r.Env.ReplaceConfig(task.Config)
	if err := r.Driver.Validate(&task); err != nil {
		return &Failure{Type: drover.TaskFailedValidation, Err: err}
	}
	return nil
}
