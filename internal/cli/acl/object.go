package acl

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// show prints an object, as the output wants it.
type show[T any] func(app *term.App, o *term.Output, v *T) error

// put writes v and shows the object that was stored.
func put[T any](ctx context.Context, app *term.App, c *api.Client, o *term.Output, path string, v any, as show[T]) error {
	var stored T
	if err := c.Put(ctx, path, nil, v, &stored); err != nil {
		return err
	}
	return as(app, o, &stored)
}

// infoCommand shows the object below the path that its argument names.
func infoCommand[T any](app *term.App, use, short, path string, as show[T]) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var v T
		if _, err := c.Get(ctx, path+url.PathEscape(args[0]), nil, &v); err != nil {
			return err
		}
		return as(app, o, &v)
	}
	c := term.NomadCommand(app, use, short, 1, 1, run)
	o.Bind(c.Flags())
	return c
}
