package follow

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// Finder finds a thing by the beginning of its id, as (*api.Client).Job does. Errors: NotFound; Invalid when several begin so.
type Finder[T any] func(c *api.Client, ctx context.Context, prefix string) (T, error)

// Change finds a thing, changes it with do, and follows the evaluation that comes of it, if one does. do gets the
// client and the thing, and is called once. Errors: the API's; those of find, do and Evaluation.
func Change[T any](
	ctx context.Context, app *term.App, f Options, find Finder[T], prefix string, do func(*api.Client, T) (drover.Outcome, error),
) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	v, err := find(c, ctx, prefix)
	if err != nil {
		return err
	}
	o, err := do(c, v)
	if err != nil || o.EvalID == "" {
		return err
	}
	return Evaluation(ctx, app, c, o.EvalID, f)
}
