package alloc

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
)

// act finds the allocation of args[0] and does something to it.
func act(ctx context.Context, app *term.App, prefix string, do func(*api.Client, *drover.Allocation) error) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	v, err := c.Allocation(ctx, prefix)
	if err != nil {
		return err
	}
	return do(c, v)
}

func stopCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	var noDelay bool
	c := term.Command(app, "stop ALLOC", "Stop an allocation; its job gets another one", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		return act(ctx, app, args[0], func(c *api.Client, v *drover.Allocation) error {
			var r follow.Registered
			q := url.Values{"no_shutdown_delay": {strconv.FormatBool(noDelay)}}
			if err := c.Put(ctx, "/v1/allocation/"+v.ID+"/stop", q, nil, &r); err != nil {
				return err
			}
			return follow.Evaluation(ctx, app, c, r.EvalID, *f)
		})
	})
	c.Flags().BoolVar(&noDelay, "no-shutdown-delay", false, "do not wait for shutdown_delay")
	f.Bind(c)
	return c
}

func restartCommand(app *term.App) *cobra.Command {
	var task string
	var all bool
	c := term.Command(app, "restart ALLOC [TASK]", "Restart the tasks of an allocation in place", 1, 2, func(ctx context.Context, app *term.App, args []string) error {
		if len(args) == 2 {
			task = args[1]
		}
		return act(ctx, app, args[0], func(c *api.Client, v *drover.Allocation) error {
			return c.Put(ctx, "/v1/client/allocation/"+v.ID+"/restart", nil, map[string]any{"TaskName": task, "AllTasks": all}, nil)
		})
	})
	c.Flags().StringVar(&task, "task", "", "this task; default: all that run")
	c.Flags().BoolVar(&all, "all-tasks", false, "those that ended too")
	return c
}

func signalCommand(app *term.App) *cobra.Command {
	signal, task := "", ""
	c := term.Command(app, "signal ALLOC [TASK]", "Send a signal to the tasks of an allocation", 1, 2, func(ctx context.Context, app *term.App, args []string) error {
		if len(args) == 2 {
			task = args[1]
		}
		return act(ctx, app, args[0], func(c *api.Client, v *drover.Allocation) error {
			return c.Put(ctx, "/v1/client/allocation/"+v.ID+"/signal", nil, map[string]string{"Task": task, "Signal": signal}, nil)
		})
	})
	c.Flags().StringVarP(&signal, "signal", "s", "SIGKILL", "the signal's name")
	c.Flags().StringVar(&task, "task", "", "this task; default: all")
	return c
}
