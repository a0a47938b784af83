package term

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/cli/api"
)

// passThrough marks commands whose words after the first belong to another program: all of them, or those that follow
// the command's own flags.
const (
	PassThrough = "pass-through"
	AfterFirst  = "after the first word"
	AfterFlags  = "after the first word and flags"
)

// StandsForFirst marks a flag that stands in place of the first word, so that what follows the flags is the program.
const StandsForFirst = "stands for the first word"

// Group is a command that only has others below it. Without a word it prints its help; an unknown word is an error
// with suggestions, so that a misspelt command does not exit with 0.
func Group(name, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: name + " COMMAND", Short: short, SuggestionsMinimumDistance: 2, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			hint := ""
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "; perhaps: " + strings.Join(near, ", ")
			}
			return drover.Errorf(drover.Invalid, "%s has no command %q%s; '%s -help' lists them", c.CommandPath(), args[0], hint, c.CommandPath())
		},
	}
	c.AddCommand(children...)
	return c
}

// RunFunc is what a command does with its words. Errors: with a code; *ExitError for an exit code of its own.
type RunFunc func(ctx context.Context, app *App, args []string) error

// Command is a command that does something; it takes from least to most words (most < 0: any number).
func Command(app *App, use, short string, least, most int, run RunFunc) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) >= least && (most < 0 || len(args) <= most) {
				return nil
			}
			return drover.Errorf(drover.Invalid, "%s given; it is: %s", Plural(len(args), "argument"), c.UseLine())
		},
		RunE: func(c *cobra.Command, args []string) error { return run(c.Context(), app, args) },
	}
}

// NomadCommand is a Command that asks an agent by Nomad's API; run gets the client.
func NomadCommand(
	app *App, use, short string, least, most int, run func(ctx context.Context, c *api.Client, args []string) error,
) *cobra.Command {
	return Command(app, use, short, least, most, func(ctx context.Context, app *App, args []string) error {
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		return run(ctx, c, args)
	})
}

// NativeCommand is a Command that asks an agent by Drover's own API; run gets the client.
func NativeCommand(
	app *App, use, short string, least, most int, run func(ctx context.Context, c *client.Client, args []string) error,
) *cobra.Command {
	return Command(app, use, short, least, most, func(ctx context.Context, app *App, args []string) error {
		c, err := app.Native()
		if err != nil {
			return err
		}
		return run(ctx, c, args)
	})
}

// Remote makes a command, with all below it, one that asks an agent: it gets the flags of the target. All commands
// share one target, as only one of them runs in a process.
func Remote(app *App, c *cobra.Command) *cobra.Command {
	app.Target.Bind(c.PersistentFlags())
	return c
}

// Describe adds the long text and the examples to a command, both without the empty lines around them; lines of examples
// are indented for it.
func Describe(c *cobra.Command, long, examples string) {
	c.Long = strings.TrimSpace(long)
	if examples != "" {
		c.Example = "  " + strings.ReplaceAll(strings.TrimSpace(examples), "\n", "\n  ")
	}
}
