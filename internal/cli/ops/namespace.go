package ops

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// NamespaceCommand is "drover namespace".
func NamespaceCommand(app *term.App) *cobra.Command {
	return term.Group("namespace", "Separate jobs from each other", namespaceListCommand(app), namespaceApplyCommand(app), namespaceDeleteCommand(app))
}

func namespaceListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List namespaces", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*drover.Namespace]{
			Path: "/v1/namespaces", None: "There are none.", Heading: "Name|Description|Meta",
			Row: func(n *drover.Namespace) []string { return []string{n.Name, n.Description, term.Pairs(n.Meta)} },
		})
	})
	o.Bind(c.Flags())
	return c
}

func namespaceApplyCommand(app *term.App) *cobra.Command {
	n := &drover.Namespace{}
	var meta []string
	c := term.Command(app, "apply NAME", "Make or change a namespace", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		n.Name = args[0]
		if n.Meta, err = term.KeyValues("-meta", meta); err != nil {
			return err
		}
		if err := c.Put(ctx, "/v1/namespace", nil, n, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Namespace %q is applied.\n", n.Name)
		return err
	})
	c.Flags().StringVar(&n.Description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata, key=value; can be repeated")
	return c
}

func namespaceDeleteCommand(app *term.App) *cobra.Command {
	return term.Command(app, "delete NAME", "Delete a namespace without jobs", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		if _, err := c.Call(ctx, "DELETE", "/v1/namespace/"+url.PathEscape(args[0]), nil, nil, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Namespace %q is deleted.\n", args[0])
		return err
	})
}
