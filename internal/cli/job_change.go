package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

// following are the flags of commands that lead to an evaluation.
type following struct {
	detach, verbose bool
	wait            bool // until all allocations, or the deployment, ended
}

func (f *following) bind(c *cobra.Command) {
	c.Flags().BoolVar(&f.detach, "detach", false, "do not follow; print the evaluation's id")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "whole ids")
}

// change finds the job, does something to it, and follows the evaluation that comes of it.
func (a *App) change(ctx context.Context, prefix string, f following, do func(*api, *drover.Job) (registered, error)) error {
	c, err := a.asks()
	if err != nil {
		return err
	}
	j, err := c.job(ctx, prefix)
	if err != nil {
		return err
	}
	answer, err := do(c, j)
	if err != nil || answer.EvalID == "" {
		return err
	}
	return a.follow(ctx, c, answer.EvalID, f)
}

func (a *App) jobStopCommand() *cobra.Command {
	f := &following{}
	var purge, noDelay, yes bool
	var priority int
	c := leaf("stop JOB", "Stop a job", 1, 1, func(ctx context.Context, args []string) error {
		return a.change(ctx, args[0], *f, func(c *api, j *drover.Job) (r registered, err error) {
			q := inNamespace(j.Namespace)
			q.Set("purge", strconv.FormatBool(purge))
			q.Set("no_shutdown_delay", strconv.FormatBool(noDelay))
			q.Set("eval_priority", strconv.Itoa(priority))
			_, err = c.call(ctx, "DELETE", jobPath(j.ID, ""), q, nil, &r)
			return r, err
		})
	})
	with(c, "Stops all allocations of the job. Without -purge the job stays known, with its versions.", "drover job stop web\ndrover job stop -purge web")
	c.Flags().BoolVar(&purge, "purge", false, "forget the job too")
	c.Flags().BoolVar(&noDelay, "no-shutdown-delay", false, "do not wait for shutdown_delay")
	c.Flags().BoolVar(&yes, "yes", false, "accepted for Nomad's sake: nothing is asked here")
	c.Flags().IntVar(&priority, "eval-priority", 0, "priority of the evaluation; default: the job's")
	f.bind(c)
	return c
}

func (a *App) jobRevertCommand() *cobra.Command {
	f := &following{}
	c := leaf("revert JOB VERSION", "Register an older version again", 2, 2, func(ctx context.Context, args []string) error {
		version, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return drover.Errorf(drover.Invalid, "version %q: want a number; 'drover job history %s' lists them", args[1], args[0])
		}
		return a.change(ctx, args[0], *f, func(c *api, j *drover.Job) (r registered, err error) {
			err = c.put(ctx, jobPath(j.ID, "/revert"), inNamespace(j.Namespace), map[string]any{"JobID": j.ID, "JobVersion": version}, &r)
			return r, err
		})
	})
	f.bind(c)
	return c
}

func (a *App) jobScaleCommand() *cobra.Command {
	f := &following{}
	c := leaf("scale JOB [GROUP] COUNT", "Set the count of a group", 2, 3, func(ctx context.Context, args []string) error {
		n, err := strconv.ParseInt(args[len(args)-1], 10, 32)
		if err != nil || n < 0 {
			return drover.Errorf(drover.Invalid, "count %q: want a number, 0 or more", args[len(args)-1])
		}
		return a.change(ctx, args[0], *f, func(c *api, j *drover.Job) (r registered, err error) {
			group := ""
			switch {
			case len(args) == 3:
				group = args[1]
			case len(j.TaskGroups) == 1:
				group = j.TaskGroups[0].Name
			default:
				return r, drover.Errorf(drover.Invalid, "job %q has %d groups: name one", j.ID, len(j.TaskGroups))
			}
			body := map[string]any{"Count": n, "Target": map[string]string{"Job": j.ID, "Group": group, "Namespace": j.Namespace}, "Message": "submitted using the drover command line"}
			err = c.put(ctx, jobPath(j.ID, "/scale"), inNamespace(j.Namespace), body, &r)
			return r, err
		})
	})
	with(c, "", "drover job scale web 3\ndrover job scale shop frontend 5")
	f.bind(c)
	return c
}

func (a *App) jobEvalCommand() *cobra.Command {
	f := &following{}
	var force bool
	c := leaf("eval JOB", "Look at a job's placement again", 1, 1, func(ctx context.Context, args []string) error {
		return a.change(ctx, args[0], *f, func(c *api, j *drover.Job) (r registered, err error) {
			body := map[string]any{"JobID": j.ID, "EvalOptions": map[string]any{"ForceReschedule": force}}
			err = c.put(ctx, jobPath(j.ID, "/evaluate"), inNamespace(j.Namespace), body, &r)
			return r, err
		})
	})
	c.Flags().BoolVar(&force, "force-reschedule", false, "replace failed allocations now, whatever their reschedule policy says")
	f.bind(c)
	return c
}

func (a *App) jobAllocsCommand() *cobra.Command {
	o := &output{}
	var all bool
	c := leaf("allocs JOB", "List a job's allocations", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		j, err := c.job(ctx, args[0])
		if err != nil {
			return err
		}
		q := inNamespace(j.Namespace)
		q.Set("all", strconv.FormatBool(all))
		var list []*drover.AllocationListStub
		if _, err := c.get(ctx, jobPath(j.ID, "/allocations"), q, &list); err != nil {
			return err
		}
		newestFirst(list)
		if done, err := o.data(a.Out, list); done {
			return err
		}
		return a.allocTable(o, list)
	})
	c.Flags().BoolVar(&all, "all", false, "those of an earlier job of this name too")
	o.bind(c.Flags())
	return c
}

func (a *App) jobPeriodicCommand() *cobra.Command {
	f := &following{}
	force := leaf("force JOB", "Launch a periodic job now", 1, 1, func(ctx context.Context, args []string) error {
		return a.change(ctx, args[0], *f, func(c *api, j *drover.Job) (r registered, err error) {
			if j.Periodic == nil {
				return r, drover.Errorf(drover.Invalid, "job %q is not periodic", j.ID)
			}
			err = c.put(ctx, jobPath(j.ID, "/periodic/force"), inNamespace(j.Namespace), nil, &r)
			return r, err
		})
	})
	f.bind(force)
	return group("periodic", "Launch periodic jobs", force)
}

func (a *App) jobInitCommand() *cobra.Command {
	var short bool
	c := leaf("init [FILE]", "Write an example of a job file", 0, 1, func(_ context.Context, args []string) error {
		name := "example.nomad.hcl"
		if len(args) > 0 {
			name = args[0]
		}
		if err := writeNew(name, exampleJob); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.Out, "Wrote %s. Start it with: drover job run %[1]s\n", name)
		return err
	})
	c.Flags().BoolVar(&short, "short", false, "accepted for Nomad's sake: the example is short")
	return c
}
