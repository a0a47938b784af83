package node

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// metadata is a node's, as the API tells it: what counts, and what of it was set while the node ran (null: taken away) or
// stands in its configuration.
type metadata struct {
	Meta    map[string]string
	Dynamic map[string]*string
	Static  map[string]string
}

// metaCommand is "drover node meta".
func metaCommand(app *term.App) *cobra.Command {
	return term.Group("meta", "See and change the metadata of nodes while they run", metaReadCommand(app), metaApplyCommand(app))
}

// metaNode returns the node that -node-id names, or the agent's own.
func metaNode(ctx context.Context, c *api.Client, id string) (*drover.Node, error) {
	if id == "" {
		return nodeOf(ctx, c, nil, true)
	}
	return c.Node(ctx, id)
}

// metaReadCommand is "drover node meta read".
func metaReadCommand(app *term.App) *cobra.Command {
	o, id := &term.Output{}, ""
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		n, err := metaNode(ctx, c, id)
		if err != nil {
			return err
		}
		var m metadata
		if _, err := c.Get(ctx, "/v1/client/metadata", api.Query("node_id", n.ID), &m); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, m); done {
			return err
		}
		var rows [][]string
		for _, key := range slices.Sorted(maps.Keys(m.Meta)) {
			rows = append(rows, []string{key, m.Meta[key], origin(m, key)})
		}
		for _, key := range slices.Sorted(maps.Keys(m.Dynamic)) {
			if m.Dynamic[key] == nil {
				rows = append(rows, []string{key, "", "unset"})
			}
		}
		return term.Table(app.Out, "The node has no metadata.", "Key|Value|From", rows)
	}
	c := term.NomadCommand(app, "read", "Show a node's metadata, and where each key is from", 0, 0, run)
	c.Flags().StringVar(&id, "node-id", "", "the node; default: the agent's own")
	o.Bind(c.Flags())
	return c
}

// origin says where a key's value is from.
func origin(m metadata, key string) string {
	if m.Dynamic[key] != nil {
		return "set"
	}
	return "configuration"
}

// metaApplyCommand is "drover node meta apply". It outlives restarts of the node.
func metaApplyCommand(app *term.App) *cobra.Command {
	id, unset := "", []string(nil)
	run := func(ctx context.Context, c *api.Client, args []string) error {
		pairs, err := term.KeyValues("metadata", args)
		if err != nil {
			return err
		}
		change := map[string]*string{}
		for key, value := range pairs {
			change[key] = &value
		}
		for _, key := range unset {
			if _, both := pairs[key]; both {
				return drover.Errorf(drover.Invalid, "%q is to be set and unset", key)
			}
			change[key] = nil
		}
		if len(change) == 0 {
			return drover.Errorf(drover.Invalid, "say what to change: key=value, or -unset key")
		}
		n, err := metaNode(ctx, c, id)
		if err != nil {
			return err
		}
		if err := c.Put(ctx, "/v1/client/metadata", nil, map[string]any{"NodeID": n.ID, "Meta": change}, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "The metadata of node %s (%s) is changed.\n", term.ShortID(n.ID), n.Name)
		return err
	}
	c := term.NomadCommand(app, "apply KEY=VALUE…", "Change a node's metadata", 0, -1, run)
	term.Describe(c, `Keys that are not named stay as they are. The changes outlive restarts of the node, and come before its configuration.`,
		`drover node meta apply -node-id 91c3 rack=7 color=red
drover node meta apply -unset color,rack`)
	c.Flags().StringVar(&id, "node-id", "", "the node; default: the agent's own")
	c.Flags().StringSliceVar(&unset, "unset", nil, "take these keys away, also of the configuration; separated by commas")
	return c
}

// configCommand is "drover node config", of which only -servers is there: nodes learn of servers by themselves.
func configCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var servers bool
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		if !servers {
			return drover.Errorf(drover.Invalid, "give -servers")
		}
		list := []string{}
		if _, err := c.Get(ctx, "/v1/agent/servers", nil, &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		for _, address := range list {
			fmt.Fprintln(app.Out, term.OneLine(address))
		}
		return nil
	}
	c := term.NomadCommand(app, "config -servers", "List the servers that the agent knows", 0, 0, run)
	c.Flags().BoolVar(&servers, "servers", false, "print the addresses of the servers, a line each")
	o.Bind(c.Flags())
	return c
}
