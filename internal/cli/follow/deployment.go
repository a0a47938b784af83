package follow

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// Deployment prints how a deployment goes until it ends: each change of a group, and when it waits for a person. Errors: the API's;
// *term.ExitError with 1 if it failed.
func Deployment(ctx context.Context, app *term.App, c *api.Client, d *drover.Deployment) error {
	var index uint64
	told := map[string]string{} // last told of a group, and of the whole under ""
	for {
		var now drover.Deployment
		next, err := c.Get(ctx, "/v1/deployment/"+d.ID, api.Blocking(api.InNamespace(d.Namespace), index), &now)
		if err != nil {
			return err
		}
		index = next
		for _, name := range slices.Sorted(maps.Keys(now.TaskGroups)) {
			if line := progress(now.TaskGroups[name]); line != told[name] {
				told[name] = line
				fmt.Fprintf(app.Out, "    %s: %s\n", name, line)
			}
		}
		if now.Active() {
			if line := waits(&now); line != told[""] {
				told[""] = line
				fmt.Fprintf(app.Out, "==> Deployment %s %s\n", term.ShortID(now.ID), cmp.Or(line, "goes on"))
			}
			continue
		}
		fmt.Fprintf(app.Out, "==> Deployment %s is %s: %s\n", term.ShortID(now.ID), now.Status, now.StatusDescription)
		if now.Status != drover.DeploymentSuccessful {
			return &term.ExitError{Code: term.ExitFailure}
		}
		return nil
	}
}

// progress says how far a group is.
func progress(g *drover.DeploymentState) string {
	line := fmt.Sprintf("%d of %d placed, %d healthy, %d unhealthy", g.PlacedAllocs, g.DesiredTotal, g.HealthyAllocs, g.UnhealthyAllocs)
	switch {
	case g.DesiredCanaries == 0:
	case g.Promoted:
		line += ", promoted"
	default:
		line += fmt.Sprintf(", %d of %s placed", len(g.PlacedCanaries), term.Plural(g.DesiredCanaries, "canary"))
	}
	return line
}

// waits says what a person is to do before the deployment goes on; "" if nothing.
func waits(d *drover.Deployment) string {
	if d.Status == drover.DeploymentPaused {
		return "is paused: 'drover deployment resume " + term.ShortID(d.ID) + "' lets it go on"
	}
	canaries, healthy := false, true
	for _, g := range d.TaskGroups {
		if g.DesiredCanaries > 0 && !g.Promoted && !g.AutoPromote {
			canaries = true
			healthy = healthy && g.HealthyAllocs >= g.DesiredCanaries
		}
	}
	if canaries && healthy {
		return "has healthy canaries: 'drover job promote " + d.JobID + "' lets them replace the old version"
	}
	return ""
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
