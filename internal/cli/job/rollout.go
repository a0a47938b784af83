package job

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// deploymentsCommand is "drover job deployments", newest first. By default only deployments of this registration are
// listed: a job that was purged and registered again has another create index. -latest shows one, and for programs prints
// that one alone.
func deploymentsCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var latest, all bool
	run := func(ctx context.Context, c *api.Client, args []string) error {
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		if latest {
			return showLatest(ctx, app, c, o, j)
		}
		q := api.InNamespace(j.Namespace)
		q.Set("all", strconv.FormatBool(all))
		list := []*drover.Deployment{}
		if _, err := c.Get(ctx, api.JobPath(j.ID, "/deployments"), q, &list); err != nil {
			return err
		}
		return term.Show(app, o, list, view.DeploymentListing(o))
	}
	c := term.NomadCommand(app, "deployments JOB", "List a job's deployments", 1, 1, run)
	term.Describe(c, "", "drover job deployments web\ndrover job deployments -latest -t '{{.ID}}' web")
	c.Flags().BoolVar(&latest, "latest", false, "show the newest one, group by group")
	c.Flags().BoolVar(&all, "all", false, "those of an earlier job of this name too")
	o.Bind(c.Flags())
	return c
}

// showLatest prints the newest deployment of the job, which may have none.
func showLatest(ctx context.Context, app *term.App, c *api.Client, o *term.Output, j *drover.Job) error {
	d, err := latestDeployment(ctx, c, j)
	if err != nil {
		return err
	}
	if done, err := o.Data(app.Out, d); done {
		return err
	}
	if d == nil {
		_, err := fmt.Fprintln(app.Out, "There are none.")
		return err
	}
	return view.Deployment(app, o, d)
}

// latestDeployment returns the newest deployment of the job, nil if there is none.
func latestDeployment(ctx context.Context, c *api.Client, j *drover.Job) (d *drover.Deployment, err error) {
	_, err = c.Get(ctx, api.JobPath(j.ID, "/deployment"), api.InNamespace(j.Namespace), &d)
	return d, err
}

// promoteCommand is "drover job promote": "deployment promote" of the job's newest deployment.
func promoteCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	var groups []string
	run := func(ctx context.Context, app *term.App, args []string) error {
		return change(ctx, app, args[0], *f, func(c *api.Client, j *drover.Job) (o drover.Outcome, err error) {
			d, err := latestDeployment(ctx, c, j)
			if err != nil {
				return o, err
			}
			if d == nil {
				return o, drover.Errorf(drover.NotFound, "job %q has no deployment to promote", j.ID)
			}
			return follow.ChangeDeployment(ctx, app, c, d, "promote", map[string]any{"All": len(groups) == 0, "Groups": groups})
		})
	}
	c := term.Command(app, "promote JOB", "Let the canaries of a job replace its old version", 1, 1, run)
	term.Describe(c, `
Promotes the job's newest deployment: of all groups, or only of those that -group names. It is refused while canaries are not
healthy.`, "drover job promote web\ndrover job promote -wait -group frontend web")
	c.Flags().StringArrayVar(&groups, "group", nil, "only this group; can be repeated")
	f.Bind(c)
	f.BindWait(c)
	return c
}
