package env

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// RunnerCommand is "drover runner".
func RunnerCommand(app *term.App) *cobra.Command {
	return term.Group("runner", "Use claimed runners",
		runnerListCommand(app), runnerClaimCommand(app), runnerExecCommand(app), runnerCopyCommand(app), runnerRemoveCommand(app))
}

// runnerListCommand is "drover runner list". It lists warm runners too, which have no id yet: a runner gets one by a
// claim.
func runnerListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	environment := ""
	c := term.NativeCommand(app, "list", "List warm and claimed runners", 0, 0, func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Runners(ctx, environment)
		if err != nil {
			return err
		}
		return term.Show(app, o, list, term.Listing[execution.Runner]{
			None: "There are no runners.", Heading: "ID|Environment|State|Claimed|Allocation|Node|Labels",
			Row: func(r execution.Runner) []string {
				since := ""
				if !r.ClaimedAt.IsZero() {
					since = term.Ago(r.ClaimedAt.UnixNano())
				}
				return []string{r.ID, r.Key(), string(r.State), since, o.ID(r.AllocID), o.ID(r.NodeID), term.Pairs(r.Labels)}
			},
		})
	})
	c.Flags().StringVar(&environment, "env", "", "only of this environment")
	o.Bind(c.Flags())
	return c
}

// runnerClaimCommand is "drover runner claim". Only the id goes to stdout, so that a script can keep it; how a claim
// waits goes to stderr.
func runnerClaimCommand(app *term.App) *cobra.Command {
	var r execution.ClaimRequest
	var vars, labels []string
	run := func(ctx context.Context, c *client.Client, args []string) (err error) {
		r.Environment = args[0]
		if r.Env, err = term.KeyValues("-env", vars); err != nil {
			return err
		}
		if r.Labels, err = term.KeyValues("-label", labels); err != nil {
			return err
		}
		runner, err := claimed(ctx, app, c, r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(app.Out, runner.ID)
		return err
	}
	c := term.NativeCommand(app, "claim ENV", "Claim a warm runner and print its id", 1, 1, run)
	c.Flags().DurationVar(&r.Wait, "wait", time.Minute, "how long to wait for one")
	c.Flags().DurationVar(&r.IdleTimeout, "idle-timeout", 0, "end it when nobody used it for so long; 0: as the environment says")
	c.Flags().StringArrayVar(&vars, "env", nil, "environment variable, KEY=value; can be repeated")
	c.Flags().StringArrayVar(&labels, "label", nil, "a label, key=value; can be repeated")
	return c
}

// runnerID finds a claimed runner by the beginning of its id. Warm runners cannot be named: the service chooses among
// them. Errors: NotFound; Invalid when several begin so; the API's.
func runnerID(ctx context.Context, c *client.Client, prefix string) (string, error) {
	if execution.IsKey(prefix) { // the id tells its namespace
		c = c.In(execution.NamespaceOf(prefix))
	}
	list, err := c.Runners(ctx, "")
	if err != nil {
		return "", err
	}
	// The list is filtered in place; nobody else has it.
	claimed := list[:0]
	for _, r := range list {
		if r.ID != "" && !r.ClaimedAt.IsZero() {
			claimed = append(claimed, r)
		}
	}
	id := func(r execution.Runner) string { return r.ID }
	r, err := api.Pick("claimed runner", prefix, claimed, id, func(r execution.Runner) string { return string(r.State) })
	return r.ID, err
}

// runnerExecCommand is "drover runner exec". Its flags stand before the runner, as all words behind it belong to the
// command.
func runnerExecCommand(app *term.App) *cobra.Command {
	f := &execFlags{}
	run := func(ctx context.Context, c *client.Client, args []string) error {
		id, err := runnerID(ctx, c, args[0])
		if err != nil {
			return err
		}
		argv := args[1:]
		// People write "--" from habit. A lone "--" is taken for the command's name, and fails there.
		if argv[0] == "--" && len(argv) > 1 {
			argv = argv[1:]
		}
		return execute(ctx, app, c, id, f, argv)
	}
	c := term.NativeCommand(app, "exec [flags] RUNNER COMMAND [ARG…]", "Run a command in a claimed runner", 2, -1, run)
	term.Describe(c, `Runs the command with your streams, and exits with its code. The command's own flags need no --.

`+term.EscapeHelp, "drover runner exec python-3f2a python3 main.py")
	c.Annotations = map[string]string{term.PassThrough: term.AfterFirst}
	c.DisableFlagsInUseLine = true // they stand before the runner
	c.Flags().SetInterspersed(false)
	f.bind(c.Flags())
	return c
}

// runnerRemoveCommand is "drover runner rm". The first error ends it, so runners behind that one stay claimed.
func runnerRemoveCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *client.Client, args []string) error {
		for _, prefix := range args {
			id, err := runnerID(ctx, c, prefix)
			if err != nil {
				return err
			}
			if err := c.Release(ctx, id); err != nil {
				return err
			}
		}
		return nil
	}
	c := term.NativeCommand(app, "rm RUNNER…", "End claimed runners", 1, -1, run)
	c.Aliases = []string{"release"}
	return c
}
