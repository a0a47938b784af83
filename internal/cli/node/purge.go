package node

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// purgeCommand is "drover node purge".
func purgeCommand(app *term.App) *cobra.Command {
	c := term.NomadCommand(app, "purge NODE", "Forget a node that is gone for good", 1, 1,
		func(ctx context.Context, c *api.Client, args []string) error {
			n, err := c.Node(ctx, args[0])
			if err != nil {
				return err
			}
			if err := c.Put(ctx, "/v1/node/"+n.ID+"/purge", nil, nil, nil); err != nil {
				return err
			}
			_, err = fmt.Fprintf(app.Out, "Node %s (%s) is forgotten.\n", term.ShortID(n.ID), n.Name)
			return err
		})
	term.Describe(c, `
Forgets the node at once, even if it counts as ready: its allocations are lost, and placed on other nodes. That is for a machine
that does not come back, where a drain would wait for its answer. A node whose agent runs registers again, and ends what it ran.`,
		`drover node purge 91c3`)
	return c
}
