package ops

import (
	"context"

	"github.com/drover-project/drover/internal/cli/api"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// SystemCommand is "drover system", which has "gc" only. A collection that is ordered disregards how long ago things
// ended.
func SystemCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		return c.Put(ctx, "/v1/system/gc", nil, nil, nil)
	}
	gc := term.NomadCommand(app, "gc", "Forget what ended: jobs, evaluations, allocations, nodes that are gone", 0, 0, run)
	return term.Group("system", "Look after the cluster's state", gc)
}
