package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// SystemCommand is "drover system".
func SystemCommand(app *term.App) *cobra.Command {
	gc := term.Command(app, "gc", "Forget what ended: jobs, evaluations, allocations, nodes that are gone", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		return c.Put(ctx, "/v1/system/gc", nil, nil, nil)
	})
	return term.Group("system", "Look after the cluster's state", gc)
}
