package node

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

func poolListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List node pools", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		var list []*struct {
			drover.NodePool
			NodeIdentityTTL time.Duration // answers have a number
		}
		if _, err := c.Get(ctx, "/v1/node/pools", nil, &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		var rows [][]string
		for _, p := range list {
			rows = append(rows, []string{p.Name, p.Description, strconv.FormatUint(p.ModifyIndex, 10)})
		}
		return term.Table(app.Out, "There are none.", "Name|Description|Modified at", rows)
	})
	o.Bind(c.Flags())
	return c
}

func poolApplyCommand(app *term.App) *cobra.Command {
	p := &drover.NodePool{}
	var meta []string
	c := term.Command(app, "apply NAME", "Make or change a node pool", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		p.Name = args[0]
		if p.Meta, err = term.KeyValues("-meta", meta); err != nil {
			return err
		}
		if err := c.Put(ctx, "/v1/node/pools", nil, p, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Node pool %q is applied.\n", p.Name)
		return err
	})
	c.Flags().StringVar(&p.Description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata, key=value; can be repeated")
	return c
}

func poolDeleteCommand(app *term.App) *cobra.Command {
	return term.Command(app, "delete NAME", "Delete a node pool that nothing uses", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		if _, err := c.Call(ctx, "DELETE", "/v1/node/pool/"+url.PathEscape(args[0]), nil, nil, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Node pool %q is deleted.\n", args[0])
		return err
	})
}
