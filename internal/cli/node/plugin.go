package node

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// PluginCommand is "drover plugin".
func PluginCommand(app *term.App) *cobra.Command {
	return term.Group("plugin", "Look at the drivers of nodes", pluginStatusCommand(app))
}

// plugin is a driver with the nodes that have it.
type plugin struct {
	ID, Type     string
	NodesHealthy int
	Nodes        []pluginNode
	unhealthy    int
}

// pluginNode is a node that has a plugin, or lacks something for it.
type pluginNode struct {
	ID, Name, Status string
	Detected         bool
	Healthy          bool
	Description      string
}

// pluginStatusCommand is "drover plugin status". Nodes that are down count with what they had at last.
func pluginStatusCommand(app *term.App) *cobra.Command {
	o, kind := &term.Output{}, ""
	run := func(ctx context.Context, c *api.Client, args []string) error {
		list := []plugin{}
		if kind == "" || kind == typeDriver {
			var err error
			if list, err = plugins(ctx, c); err != nil {
				return err
			}
		}
		if len(args) == 1 {
			i := slices.IndexFunc(list, func(p plugin) bool { return p.ID == args[0] })
			if i < 0 {
				return drover.Errorf(drover.NotFound, "no node has a driver %q", args[0])
			}
			return showPlugin(app, o, &list[i])
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		rows := make([][]string, len(list))
		for i, p := range list {
			rows[i] = []string{p.ID, p.Type, strconv.Itoa(p.NodesHealthy), strconv.Itoa(p.unhealthy)}
		}
		return term.Table(app.Out, "There are no plugins.", "Plugin|Type|Healthy on|Unhealthy on", rows)
	}
	c := term.NomadCommand(app, "status [DRIVER]", "List the drivers, or show where one is and what it lacks", 0, 1, run)
	term.Describe(c, `
Counts the nodes on which each driver was found, healthy or not. There are no CSI plugins: volumes are of nodes, and 'volume status' lists
them.`, `
drover plugin status
drover plugin status docker`)
	c.Flags().StringVar(&kind, "type", "", "driver; of other types, as csi, there are none")
	o.Bind(c.Flags())
	return c
}

const typeDriver = "driver"

// plugins are the drivers that nodes have, by name.
func plugins(ctx context.Context, c *api.Client) ([]plugin, error) {
	var nodes []*drover.NodeListStub
	if _, err := c.Get(ctx, "/v1/nodes", nil, &nodes); err != nil {
		return nil, err
	}
	byName := map[string]*plugin{}
	for _, n := range nodes {
		for name, d := range n.Drivers {
			p := byName[name]
			if p == nil {
				p = &plugin{ID: name, Type: typeDriver}
				byName[name] = p
			}
			p.Nodes = append(p.Nodes, pluginNode{n.ID, n.Name, n.Status, d.Detected, d.Healthy, d.HealthDescription})
			switch {
			case d.Healthy:
				p.NodesHealthy++
			case d.Detected:
				p.unhealthy++
			}
		}
	}
	list := []plugin{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		p := byName[name]
		slices.SortFunc(p.Nodes, func(a, b pluginNode) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
		list = append(list, *p)
	}
	return list, nil
}

func showPlugin(app *term.App, o *term.Output, p *plugin) error {
	if done, err := o.Data(app.Out, p); done {
		return err
	}
	rows := make([][]string, len(p.Nodes))
	for i, n := range p.Nodes {
		rows[i] = []string{o.ID(n.ID), n.Name, n.Status, term.YesNo(n.Detected), term.YesNo(n.Healthy), n.Description}
	}
	return term.Table(app.Out, "", "Node|Name|Status|Detected|Healthy|Says", rows)
}
