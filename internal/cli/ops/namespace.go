package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// namespaces are the routes by which a namespace is written and deleted.
var namespaces = term.Named{Kind: "Namespace", WritePath: "/v1/namespace", ItemPath: "/v1/namespace/"}

// NamespaceCommand is "drover namespace".
func NamespaceCommand(app *term.App) *cobra.Command {
	return term.Group("namespace", "Separate jobs from each other",
		namespaceListCommand(app), namespaceApplyCommand(app), namespaces.DeleteCommand(app, "Delete a namespace without jobs"))
}

// namespaceListCommand is "drover namespace list".
func namespaceListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List namespaces", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*drover.Namespace]{
			Path: "/v1/namespaces", None: "There are no namespaces.", Heading: "Name|Description|Meta",
			Row: func(n *drover.Namespace) []string { return []string{n.Name, n.Description, term.Pairs(n.Meta)} },
		})
	})
	o.Bind(c.Flags())
	return c
}

// namespaceApplyCommand is "drover namespace apply". It replaces the namespace as a whole: what is not given becomes
// empty.
func namespaceApplyCommand(app *term.App) *cobra.Command {
	n := &drover.Namespace{}
	return namespaces.ApplyCommand(app, &n.Description, func(name string, meta map[string]string) any {
		n.Name, n.Meta = name, meta
		return n
	})
}
