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

// change finds the one allocation whose id begins with prefix, changes it with do, and follows the evaluation that
// comes of it. An outcome without an evaluation ends the command at once.
func change(
	ctx context.Context, app *term.App, prefix string, f follow.Options,
	do func(*api.Client, *drover.Allocation) (drover.Outcome, error),
) error {
	return follow.Change(ctx, app, f, (*api.Client).Allocation, prefix, do)
}

// tellTasks sends an order ("restart" or "signal") through the server to the node of an allocation, which passes it
// to the tasks. No evaluation comes of it: the scheduler has no part in it. Errors: the API's; NotFound.
func tellTasks(ctx context.Context, app *term.App, prefix, order string, body any) error {
	return change(ctx, app, prefix, follow.Options{}, func(c *api.Client, v *drover.Allocation) (o drover.Outcome, err error) {
		return o, c.Put(ctx, "/v1/client/allocation/"+v.ID+"/"+order, nil, body, nil)
	})
}

// stopCommand is "drover alloc stop". The scheduler replaces the allocation, so a whole job is stopped by "job stop".
func stopCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	var noDelay bool
	run := func(ctx context.Context, app *term.App, args []string) error {
		return change(ctx, app, args[0], *f, func(c *api.Client, v *drover.Allocation) (o drover.Outcome, err error) {
			q := url.Values{"no_shutdown_delay": {strconv.FormatBool(noDelay)}}
			err = c.Put(ctx, "/v1/allocation/"+v.ID+"/stop", q, nil, &o)
			return o, err
		})
	}
	c := term.Command(app, "stop ALLOC", "Stop an allocation; its job gets another one", 1, 1, run)
	c.Flags().BoolVar(&noDelay, "no-shutdown-delay", false, "do not wait for shutdown_delay")
	f.Bind(c)
	return c
}

// restartCommand is "drover alloc restart". The allocation keeps its id, node and folder. A task may be named by a
// second word, as Nomad has it, or by -task; the word comes first.
func restartCommand(app *term.App) *cobra.Command {
	var task string
	var all bool
	run := func(ctx context.Context, app *term.App, args []string) error {
		if len(args) == 2 {
			task = args[1]
		}
		return tellTasks(ctx, app, args[0], "restart", map[string]any{"TaskName": task, "AllTasks": all})
	}
	c := term.Command(app, "restart ALLOC [TASK]", "Restart the tasks of an allocation in place", 1, 2, run)
	c.Flags().StringVar(&task, "task", "", "this task; default: all that run")
	c.Flags().BoolVar(&all, "all-tasks", false, "those that ended too")
	return c
}

// signalCommand is "drover alloc signal", with Nomad's default of SIGKILL. A task that ends by it is restarted as its
// restart block says.
func signalCommand(app *term.App) *cobra.Command {
	signal, task := "", ""
	run := func(ctx context.Context, app *term.App, args []string) error {
		if len(args) == 2 {
			task = args[1]
		}
		return tellTasks(ctx, app, args[0], "signal", map[string]string{"Task": task, "Signal": signal})
	}
	c := term.Command(app, "signal ALLOC [TASK]", "Send a signal to the tasks of an allocation", 1, 2, run)
	c.Flags().StringVarP(&signal, "signal", "s", "SIGKILL", "the signal's name")
	c.Flags().StringVar(&task, "task", "", "this task; default: all")
	return c
}
