package rawexec

import (
	"context"

	"drover"
)

// StartExecution starts a command beside the task, in its folder, as its user.
func (h *handle) StartExecution(ctx context.Context, spec drover.ExecutionSpec) (drover.Session, error) {
	client, err := h.conn(ctx)
	if err != nil {
		return nil, err
	}
	return client.StartExecution(ctx, spec)
}

// AttachExecution opens another session on an execution.
func (h *handle) AttachExecution(ctx context.Context, id string, from drover.Offsets) (drover.Session, error) {
	client, err := h.conn(ctx)
	if err != nil {
		return nil, err
	}
	return client.AttachExecution(ctx, id, from)
}

// Executions lists them.
func (h *handle) Executions(ctx context.Context) ([]drover.Execution, error) {
	client, err := h.conn(ctx)
	if err != nil {
		return nil, err
	}
	return client.Executions(ctx)
}

// Files are the machine's files, as the task's user sees them.
func (h *handle) Files() drover.Files {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client.Files()
}
