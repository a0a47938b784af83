package job

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
)

// startCommand is "drover job start": a stopped job goes back to the newest version that was not a stop.
func startCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return change(ctx, app, args[0], *f, func(c *api.Client, j *drover.Job) (o drover.Outcome, err error) {
			if !j.Stop {
				return o, drover.Errorf(drover.Conflict, "job %q was not stopped: it is %s", j.ID, j.Status)
			}
			all, err := versions(ctx, c, j, nil)
			if err != nil {
				return o, err
			}
			i := slices.IndexFunc(all.Versions, func(v *drover.Job) bool { return !v.Stop })
			if i < 0 {
				return o, drover.Errorf(drover.NotFound, "no version of job %q that ran is kept: register it with 'drover job run'", j.ID)
			}
			// Somebody else may start it at the same time.
			return revert(ctx, c, j, map[string]any{"JobVersion": all.Versions[i].Version, "EnforcePriorVersion": j.Version})
		})
	}
	c := term.Command(app, "start JOB", "Start a job that was stopped", 1, 1, run)
	term.Describe(c, `Registers the newest version that was not a stop again. A job that was purged is not known any more: register it with
'drover job run'.`, "drover job stop web\ndrover job start web")
	f.Bind(c)
	f.BindWait(c)
	return c
}

// revert registers a version of the job again; body says which, and under which conditions. Errors: the API's, NotFound.
func revert(ctx context.Context, c *api.Client, j *drover.Job, body map[string]any) (o drover.Outcome, err error) {
	body["JobID"] = j.ID
	err = c.Put(ctx, api.JobPath(j.ID, "/revert"), api.InNamespace(j.Namespace), body, &o)
	return o, err
}
