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

// ChangeDeployment sends an action ("promote", "fail" or "pause") to a deployment; body is completed with its id. It tells
// if the job goes back to an older version: a failed deployment with auto_revert registers the last stable one again.
// Errors: the API's.
func ChangeDeployment(
	ctx context.Context, app *term.App, c *api.Client, d *drover.Deployment, action string, body map[string]any,
) (o drover.Outcome, err error) {
	body["DeploymentID"] = d.ID
	if err := c.Put(ctx, "/v1/deployment/"+action+"/"+d.ID, api.InNamespace(d.Namespace), body, &o); err != nil {
		return o, err
	}
	if o.RevertedJobVersion != nil {
		_, err = fmt.Fprintf(app.Out, "The job goes back to version %d.\n", *o.RevertedJobVersion)
	}
	return o, err
}
