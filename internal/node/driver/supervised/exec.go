package supervised

import (
	"context"

	"github.com/drover-project/drover/execution"
)

// StartExecution runs a command in the task.
func (t *Task) StartExecution(ctx context.Context, spec execution.Spec) (execution.Session, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.StartExecution(ctx, spec)
}

// AttachExecution opens another session on a command.
func (t *Task) AttachExecution(ctx context.Context, id string, from execution.Offsets) (execution.Session, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.AttachExecution(ctx, id, from)
}

// Executions lists commands.
func (t *Task) Executions(ctx context.Context) ([]execution.Execution, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.Executions(ctx)
}

// Files gives access to the files that the task sees.
func (t *Task) Files() execution.Files { return t.Last().Files() }
