package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// DeploymentCommand is "drover deployment".
func DeploymentCommand(app *term.App) *cobra.Command {
	return term.Group("deployment", "Watch and steer deployments: the roll-out of a service's version",
		deploymentListCommand(app), deploymentStatusCommand(app), deploymentPromoteCommand(app), deploymentFailCommand(app),
		deploymentPauseCommand(app, "pause", "Pause a deployment", true), deploymentPauseCommand(app, "resume", "Go on with a paused deployment",
			false))
}

// deploymentListCommand is "drover deployment list", newest first.
func deploymentListCommand(app *term.App) *cobra.Command {
	o, page := &term.Output{}, &term.Page{}
	c := term.Command(app, "list", "List deployments", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		l := view.DeploymentListing(o)
		l.Page = page
		return term.List(ctx, app, o, l)
	})
	page.Bind(c.Flags(), `Status == "running"`)
	o.Bind(c.Flags())
	return c
}

// deploymentStatusCommand is "drover deployment status". With -monitor it ends with the deployment, and with its
// result.
func deploymentStatusCommand(app *term.App) *cobra.Command {
	k := &one[*drover.Deployment]{
		find: (*api.Client).Deployment,
		follow: func(ctx context.Context, app *term.App, c *api.Client, _ *term.Output, d *drover.Deployment) error {
			return follow.Deployment(ctx, app, c, d)
		},
		show: func(_ context.Context, app *term.App, _ *api.Client, o *term.Output, d *drover.Deployment) error {
			return view.Deployment(app, o, d)
		},
	}
	c := k.command(app, "status DEPLOYMENT", "Show a deployment", "follow it to its end")
	term.Describe(c, "With -monitor it follows the deployment to its end, and exits with 1 if it failed.", `drover deployment status 4c1d
drover deployment status -monitor 4c1d`)
	return c
}

// changeDeployment finds a deployment, sends an action, and follows the evaluation that comes of it. Errors: those of
// follow.ChangeDeployment and follow.Evaluation; NotFound.
func changeDeployment(ctx context.Context, app *term.App, prefix, action string, f follow.Options, body map[string]any) error {
	do := func(c *api.Client, d *drover.Deployment) (drover.Outcome, error) {
		return follow.ChangeDeployment(ctx, app, c, d, action, body)
	}
	return follow.Change(ctx, app, f, (*api.Client).Deployment, prefix, do)
}

// deploymentPromoteCommand is "drover deployment promote", for all groups unless some are named. The server refuses
// it while canaries are not healthy.
func deploymentPromoteCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	var groups []string
	run := func(ctx context.Context, app *term.App, args []string) error {
		return changeDeployment(ctx, app, args[0], "promote", *f, map[string]any{"All": len(groups) == 0, "Groups": groups})
	}
	c := term.Command(app, "promote DEPLOYMENT", "Let the canaries' version replace the old one", 1, 1, run)
	c.Flags().StringArrayVar(&groups, "group", nil, "only this group; can be repeated")
	f.Bind(c)
	f.BindWait(c)
	return c
}

// deploymentFailCommand is "drover deployment fail". Allocations of the new version stay unless the job reverts
// itself.
func deploymentFailCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return changeDeployment(ctx, app, args[0], "fail", *f, map[string]any{})
	}
	c := term.Command(app, "fail DEPLOYMENT", "End a deployment as failed", 1, 1, run)
	f.Bind(c)
	return c
}

// deploymentPauseCommand makes "pause" and "resume": one route of the API, which differs in what the body says.
func deploymentPauseCommand(app *term.App, name, about string, pause bool) *cobra.Command {
	f := &follow.Options{}
	c := term.Command(app, name+" DEPLOYMENT", about, 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		return changeDeployment(ctx, app, args[0], "pause", *f, map[string]any{"Pause": pause})
	})
	f.Bind(c)
	return c
}
