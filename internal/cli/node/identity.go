package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// identityCommand is "drover node identity".
func identityCommand(app *term.App) *cobra.Command {
	return term.Group("identity", "See and renew what a node proves itself with", identityGetCommand(app), identityRenewCommand(app))
}

// identityGetCommand is "drover node identity get".
func identityGetCommand(app *term.App) *cobra.Command {
	o, self := &term.Output{}, false
	c := term.NomadCommand(app, "get NODE", "Show the claims of a node's identity", 0, 1,
		func(ctx context.Context, c *api.Client, args []string) error {
			n, err := nodeOf(ctx, c, args, self)
			if err != nil {
				return err
			}
			var answer struct{ Claims map[string]any }
			if _, err := c.Get(ctx, "/v1/client/identity", map[string][]string{"node_id": {n.ID}}, &answer); err != nil {
				return err
			}
			if done, err := o.Data(app.Out, answer.Claims); done {
				return err
			}
			var rows [][]string
			for name, value := range answer.Claims {
				if at, ok := value.(float64); ok { // the times
					value = time.Unix(int64(at), 0).Format(time.RFC3339)
				}
				rows = append(rows, []string{name, fmt.Sprint(value)})
			}
			slices.SortFunc(rows, slices.Compare)
			return term.Table(app.Out, "", "Claim|Value", rows)
		})
	c.Flags().BoolVar(&self, "self", false, "the agent's own node")
	o.Bind(c.Flags())
	return c
}

// identityRenewCommand is "drover node identity renew".
func identityRenewCommand(app *term.App) *cobra.Command {
	self := false
	c := term.NomadCommand(app, "renew NODE", "Have a node get another identity now", 0, 1,
		func(ctx context.Context, c *api.Client, args []string) error {
			n, err := nodeOf(ctx, c, args, self)
			if err != nil {
				return err
			}
			if err := c.Put(ctx, "/v1/client/identity/renew", nil, map[string]string{"NodeID": n.ID}, nil); err != nil {
				return err
			}
			_, err = fmt.Fprintf(app.Out, "Node %s (%s) renews its identity.\n", term.ShortID(n.ID), n.Name)
			return err
		})
	c.Flags().BoolVar(&self, "self", false, "the agent's own node")
	return c
}

// introCommand is "drover node intro".
func introCommand(app *term.App) *cobra.Command {
	return term.Group("intro", "Introduce machines that become nodes", introCreateCommand(app))
}

// introCreateCommand is "drover node intro create".
func introCreateCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var ask struct {
		TTL      acl.TTL
		NodeName string
		NodePool string
	}
	var ttl time.Duration
	c := term.NomadCommand(app, "create", "Make a token with which a machine becomes a node", 0, 0,
		func(ctx context.Context, c *api.Client, _ []string) error {
			ask.TTL = acl.TTL(ttl)
			var answer struct{ JWT string }
			if err := c.Put(ctx, "/v1/acl/identity/client-introduction-token", nil, ask, &answer); err != nil {
				return err
			}
			if done, err := o.Data(app.Out, answer); done {
				return err
			}
			_, err := fmt.Fprintf(app.Out, "Give it to the node's agent, for pool %q, as -client-intro-token or NOMAD_CLIENT_INTRO_TOKEN:\n\n%s\n",
				cmp.Or(ask.NodePool, "default"), answer.JWT)
			return err
		})
	f := c.Flags()
	f.DurationVar(&ttl, "ttl", 0, "how long the token is good (default: what the servers say, which is 5m unless configured)")
	f.StringVar(&ask.NodeName, "node-name", "", "the only name that the node may have")
	f.StringVar(&ask.NodePool, "node-pool", "", "the pool that the node is in (default \"default\")")
	o.Bind(f)
	term.Describe(c, `
The token lets a machine register as a node of the pool, as the join token does for any pool. From then on the node has an identity of
its own, which it renews by itself, and shows when it comes again. With server { client_introduction { enforcement = "strict" } } the
join token lets nobody in any more.`, `drover node intro create -node-pool gpu -ttl 10m`)
	return c
}
