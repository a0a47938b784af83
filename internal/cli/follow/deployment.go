package follow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// Deployment prints how a deployment goes until it ends. Errors: the API's; *term.ExitError with 1 if it failed.
func Deployment(ctx context.Context, app *term.App, c *api.Client, d *drover.Deployment) error {
	var index uint64
	for {
		next, err := c.Get(ctx, "/v1/deployment/"+d.ID, api.Blocking(api.InNamespace(d.Namespace), index), d)
		if err != nil {
			return err
		}
		index = next
		for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
			g := d.TaskGroups[name]
			fmt.Fprintf(app.Out, "    %s: %d of %d placed, %d healthy, %d unhealthy\n",
				name, g.PlacedAllocs, g.DesiredTotal, g.HealthyAllocs, g.UnhealthyAllocs)
		}
		if d.Active() {
			continue
		}
		fmt.Fprintf(app.Out, "==> Deployment %s is %s: %s\n", term.ShortID(d.ID), d.Status, d.StatusDescription)
		if d.Status != drover.DeploymentSuccessful {
			return &term.ExitError{Code: term.ExitFailure}
		}
		return nil
	}
}
