package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// SystemCommand is "drover system". A collection of garbage that is ordered disregards how long ago things ended.
func SystemCommand(app *term.App) *cobra.Command {
	put := func(path string) func(context.Context, *api.Client, []string) error {
		return func(ctx context.Context, c *api.Client, _ []string) error { return c.Put(ctx, path, nil, nil, nil) }
	}
	return term.Group("system", "Look after the cluster's state",
		term.NomadCommand(app, "gc", "Forget what ended: jobs, evaluations, allocations, nodes that are gone", 0, 0, put("/v1/system/gc")),
		term.Group("reconcile", "Compute anew what is derived of the state",
			term.NomadCommand(app, "summaries", "Count the allocations of all jobs anew", 0, 0, put("/v1/system/reconcile/summaries"))))
}
