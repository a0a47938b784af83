package node

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// pools are the routes by which a node pool is written and deleted.
var pools = term.Named{Kind: "Node pool", WritePath: "/v1/node/pools", ItemPath: "/v1/node/pool/"}

// poolAnswer is a node pool as the API answers it: its duration is a number there, and a text where it is written.
type poolAnswer struct {
	drover.NodePool
	NodeIdentityTTL time.Duration
}

// poolListCommand is "drover node pool list". The built-in pools "all" and "default" are among them.
func poolListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List node pools", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*poolAnswer]{
			Path: "/v1/node/pools", None: "There are no node pools.", Heading: "Name|Description|Modified at",
			Row: func(p *poolAnswer) []string {
				return []string{p.Name, p.Description, strconv.FormatUint(p.ModifyIndex, 10)}
			},
		})
	})
	o.Bind(c.Flags())
	return c
}

// poolApplyCommand is "drover node pool apply". It replaces the pool as a whole: what is not given becomes empty.
func poolApplyCommand(app *term.App) *cobra.Command {
	p := &drover.NodePool{}
	return pools.ApplyCommand(app, &p.Description, func(name string, meta map[string]string) any {
		p.Name, p.Meta = name, meta
		return p
	})
}

// poolDeleteCommand is "drover node pool delete". The server refuses it while nodes or jobs are in the pool.
func poolDeleteCommand(app *term.App) *cobra.Command {
	return pools.DeleteCommand(app, "Delete a node pool that nothing uses")
}
