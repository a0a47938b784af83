package supervised

import (
	"context"

	"github.com/drover-project/drover"
)

// StartExecution runs a command in the task.
func (t *Task) StartExecution(ctx context.Context, spec drover.ExecutionSpec) (drover.Session, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.StartExecution(ctx, spec)
}

// AttachExecution opens another session on a command.
func (t *Task) AttachExecution(ctx context.Context, id string, from drover.Offsets) (drover.Session, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.AttachExecution(ctx, id, from)
}

// Executions lists commands.
func (t *Task) Executions(ctx context.Context) ([]drover.Execution, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.Executions(ctx)
}

// Files gives access to the files that the task sees.
func (t *Task) Files() drover.Files { return t.Last().Files() }
