package term

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
)

// Named is a kind of thing that is made, changed and deleted by its name: node pools, namespaces.
type Named struct {
	Kind      string // as in `Node pool "x" was deleted.`
	WritePath string // that an object is put to
	ItemPath  string // that the escaped name is appended to, for deletion
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
