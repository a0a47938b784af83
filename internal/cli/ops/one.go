package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
)

// one is a "status" command of one kind of thing: it finds the thing by the beginning of its id, and shows or follows
// it.
type one[T any] struct {
	term.Output
	// Follow it to its end in place of showing it; -json and -t have no effect then.
	monitor bool

	// All three are set by the command that makes the value.
	find   follow.Finder[T]
	follow func(ctx context.Context, app *term.App, c *api.Client, o *term.Output, v T) error
	show   func(ctx context.Context, app *term.App, c *api.Client, o *term.Output, v T) error
}

// command makes the command with its flags; monitor is the help of -monitor.
func (k *one[T]) command(app *term.App, use, short, monitor string) *cobra.Command {
	c := term.Command(app, use, short, 1, 1, k.Run)
	c.Flags().BoolVar(&k.monitor, "monitor", false, monitor)
	k.Bind(c.Flags())
	return c
}

// Run serves term.RunFunc. Errors: those of find, follow and show.
func (k *one[T]) Run(ctx context.Context, app *term.App, args []string) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	v, err := k.find(c, ctx, args[0])
	if err != nil {
		return err
	}
	if k.monitor {
		return k.follow(ctx, app, c, &k.Output, v)
	}
	if done, err := k.Data(app.Out, v); done {
		return err
	}
	return k.show(ctx, app, c, &k.Output, v)
}
