package intake

import (
	"context"

	"github.com/drover-project/drover/internal/control/command"
)

// BeginExecution counts an execution that is about to be started in a runner, and reports whether it was not counted before. Errors:
// Exhausted beyond the quota of the runner's namespace; Gone: the runner ended.
func (in *Intake) BeginExecution(ctx context.Context, allocID, id string) (fresh bool, err error) {
	_, result, err := in.deps.Log.Propose(ctx, &command.BeginExecution{AllocID: allocID, ID: id})
	fresh, _ = result.(bool)
	return fresh, err
}

// DropExecution counts an execution no more: it was not started.
func (in *Intake) DropExecution(ctx context.Context, allocID, id string) error {
	_, _, err := in.deps.Log.Propose(ctx, &command.DropExecution{AllocID: allocID, ID: id})
	return err
}
