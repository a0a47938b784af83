package term

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
)

// Named is a kind of thing that is made, changed and deleted by its name: node pools, namespaces.
type Named struct {
	Kind      string // as in `Node pool "x" was applied.`
	WritePath string // that an object is put to
	ItemPath  string // that the escaped name is appended to, for deletion
}

// ApplyCommand is "apply NAME": it puts the object that complete makes of the name and the metadata of -meta. Nomad's command
// takes a file; such a name is refused, as it would become a thing that nobody wanted.
func (n Named) ApplyCommand(app *App, description *string, complete func(name string, meta map[string]string) any) *cobra.Command {
	var meta []string
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if name := args[0]; name == "-" || strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".json") {
			return drover.Errorf(drover.Invalid, "%q is a file: give the name, and what else there is with -description and -meta", name)
		}
		pairs, err := KeyValues("-meta", meta)
		if err != nil {
			return err
		}
		if err := c.Put(ctx, n.WritePath, nil, complete(args[0], pairs), nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "%s %q was applied.\n", n.Kind, args[0])
		return err
	}
	c := NomadCommand(app, "apply NAME", "Make or change a "+lowerFirst(n.Kind), 1, 1, run)
	c.Flags().StringVar(description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata, key=value; can be repeated")
	return c
}

// DeleteCommand is "delete NAME".
func (n Named) DeleteCommand(app *App, short string) *cobra.Command {
	return NomadCommand(app, "delete NAME", short, 1, 1, func(ctx context.Context, c *api.Client, args []string) error {
		if err := c.Delete(ctx, n.ItemPath+url.PathEscape(args[0]), nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "%s %q was deleted.\n", n.Kind, args[0])
		return err
	})
}

// lowerFirst makes a kind's name fit into a sentence; s is not empty.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
