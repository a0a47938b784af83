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

// change finds the one job whose id begins with prefix, changes it with do, and follows the evaluation that comes of
// it. An outcome without an evaluation ends the command at once: nothing is to be placed then.
func change(
	ctx context.Context, app *term.App, prefix string, f follow.Options, do func(*api.Client, *drover.Job) (drover.Outcome, error),
) error {
	return follow.Change(ctx, app, f, (*api.Client).Job, prefix, do)
}

// stopCommand is "drover job stop". It asks nothing before it acts, so -yes of Nomad's scripts is read and ignored.
func stopCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	var purge, noDelay, yes bool
	var priority int
	stop := func(ctx context.Context, app *term.App, prefix string) error {
		return change(ctx, app, prefix, *f, func(c *api.Client, j *drover.Job) (r drover.Outcome, err error) {
			q := api.InNamespace(j.Namespace)
			q.Set("purge", strconv.FormatBool(purge))
			q.Set("no_shutdown_delay", strconv.FormatBool(noDelay))
			// 0 means the job's own priority; the server takes the parameter in every request.
			q.Set("eval_priority", strconv.Itoa(priority))
			err = c.Delete(ctx, api.JobPath(j.ID, ""), q, &r)
			return r, err
		})
	}
	c := term.Command(app, "stop JOB…", "Stop jobs", 1, -1, func(ctx context.Context, app *term.App, args []string) error {
		for _, prefix := range args {
			if err := stop(ctx, app, prefix); err != nil {
				return err
			}
		}
		return nil
	})
	term.Describe(c, `Stops all allocations of the jobs, one job after the other. Without -purge a job stays known, with its versions, and
'drover job start' starts it again.`, `drover job stop web
drover job stop -purge web worker`)
	c.Flags().BoolVar(&purge, "purge", false, "forget the job too")
	c.Flags().BoolVar(&noDelay, "no-shutdown-delay", false, "do not wait for shutdown_delay")
	c.Flags().BoolVar(&yes, "yes", false, "accepted for Nomad's sake: nothing is asked here")
	c.Flags().IntVar(&priority, "eval-priority", 0, "priority of the evaluation; default: the job's")
	f.Bind(c)
	return c
}

// revertCommand is "drover job revert". A revert is a registration: the job gets a new version with the content of
// the old one, so history stays as it is.
func revertCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return change(ctx, app, args[0], *f, func(c *api.Client, j *drover.Job) (o drover.Outcome, err error) {
			version, err := versionOf(ctx, c, j, args[1])
			if err != nil {
				return o, err
			}
			return revert(ctx, c, j, map[string]any{"JobVersion": version})
		})
	}
	c := term.Command(app, "revert JOB VERSION|TAG", "Register an older version again", 2, 2, run)
	term.Describe(c, "The older version is its number, or the name that 'job tag apply' gave it.", `drover job revert web 3
drover job revert -wait web golden`)
	f.Bind(c)
	f.BindWait(c)
	return c
}

// scaleCommand is "drover job scale". The last word is the count; the one between, if there is one, is the group.
func scaleCommand(app *term.App) *cobra.Command {
	f, index := &follow.Options{}, int64(-1)
	run := func(ctx context.Context, app *term.App, args []string) error {
		// The API's count is an int64, but the group's is an int: 32 bits fit every platform.
		n, err := strconv.ParseInt(args[len(args)-1], 10, 32)
		if err != nil || n < 0 {
			return drover.Errorf(drover.Invalid, "count %q: want a number, 0 or more", args[len(args)-1])
		}
		return change(ctx, app, args[0], *f, func(c *api.Client, j *drover.Job) (r drover.Outcome, err error) {
			group, err := groupOf(j, args[1:len(args)-1])
			if err != nil {
				return r, err
			}
			body := map[string]any{
				// The message stands in the job's scaling events.
				"Count": n, "Message": "submitted using the drover command line",
				"Target": map[string]string{"Job": j.ID, "Group": group, "Namespace": j.Namespace},
			}
			if index >= 0 {
				body["JobModifyIndex"] = index
			}
			err = c.Put(ctx, api.JobPath(j.ID, "/scale"), api.InNamespace(j.Namespace), body, &r)
			return r, err
		})
	}
	c := term.Command(app, "scale JOB [GROUP] COUNT", "Set the count of a group", 2, 3, run)
	term.Describe(c, "", "drover job scale web 3\ndrover job scale shop frontend 5")
	c.Flags().Int64Var(&index, "check-index", -1, "scale only if this is the job's modify index")
	f.Bind(c)
	f.BindWait(c)
	return c
}

// groupOf returns the group that words name, or the name of the job's only group. It does not check that the group
// exists: the server does. Errors: Invalid if no group is named and the job has several.
func groupOf(j *drover.Job, words []string) (string, error) {
	switch {
	case len(words) > 0:
		return words[0], nil
	case len(j.TaskGroups) == 1:
		return j.TaskGroups[0].Name, nil
	}
	return "", drover.Errorf(drover.Invalid, "job %q has %d groups: name one", j.ID, len(j.TaskGroups))
}

// evalCommand is "drover job eval". It makes an evaluation of the registered job without a new version. Allocations
// that run as the job wants are left alone.
func evalCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	var force bool
	c := term.Command(app, "eval JOB", "Look at a job's placement again", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		return change(ctx, app, args[0], *f, func(c *api.Client, j *drover.Job) (r drover.Outcome, err error) {
			body := map[string]any{"JobID": j.ID, "EvalOptions": map[string]any{"ForceReschedule": force}}
			err = c.Put(ctx, api.JobPath(j.ID, "/evaluate"), api.InNamespace(j.Namespace), body, &r)
			return r, err
		})
	})
	c.Flags().BoolVar(&force, "force-reschedule", false, "replace failed allocations now, whatever their reschedule policy says")
	f.Bind(c)
	return c
}

// allocsCommand is "drover job allocs", newest first. By default only allocations of this registration are listed: a
// job that was purged and registered again has another create index.
func allocsCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var all bool
	c := term.NomadCommand(app, "allocs JOB", "List a job's allocations", 1, 1, func(ctx context.Context, c *api.Client, args []string) error {
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		q := api.InNamespace(j.Namespace)
		q.Set("all", strconv.FormatBool(all))
		var list []*drover.AllocationListStub
		if _, err := c.Get(ctx, api.JobPath(j.ID, "/allocations"), q, &list); err != nil {
			return err
		}
		view.SortNewestFirst(list)
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		return view.Allocations(app, o, list)
	})
	c.Flags().BoolVar(&all, "all", false, "those of an earlier job of this name too")
	o.Bind(c.Flags())
	return c
}

// periodicCommand is "drover job periodic", which has "force" only. The launch is an addition: the schedule stays.
func periodicCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	force := term.Command(app, "force JOB", "Launch a periodic job now", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		return change(ctx, app, args[0], *f, func(c *api.Client, j *drover.Job) (r drover.Outcome, err error) {
			// The job was read to find it, so a wrong kind is told here without a request.
			if j.Periodic == nil {
				return r, drover.Errorf(drover.Invalid, "job %q is not periodic", j.ID)
			}
			err = c.Put(ctx, api.JobPath(j.ID, "/periodic/force"), api.InNamespace(j.Namespace), nil, &r)
			return r, err
		})
	})
	f.Bind(force)
	return term.Group("periodic", "Launch periodic jobs", force)
}

// initCommand is "drover job init". It needs no agent, and refuses to overwrite a file.
func initCommand(app *term.App) *cobra.Command {
	var short bool
	c := term.Command(app, "init [FILE]", "Write an example of a job file", 0, 1, func(_ context.Context, app *term.App, args []string) error {
		name := "example.nomad.hcl"
		if len(args) > 0 {
			name = args[0]
		}
		if err := term.WriteNew(name, exampleJob); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Wrote %s. Start it with: drover job run %[1]s\n", name)
		return err
	})
	c.Flags().BoolVar(&short, "short", false, "accepted for Nomad's sake: the example is short")
	return c
}
