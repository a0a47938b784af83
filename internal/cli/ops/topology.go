package ops

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/term"
)

// TopologyCommand is "drover topology".
func TopologyCommand(app *term.App) *cobra.Command {
	o, by := &term.Output{}, "pool"
	c := term.Command(app, "topology", "Say where the nodes are, how they are, and how full", 0, 0,
		func(ctx context.Context, app *term.App, _ []string) error { return topology(ctx, app, o, by) })
	term.Describe(c, `
Counts the nodes of each pool, datacenter or class: how many are ready, and how many are not and why, how many allocations they have,
and what these hold of their CPU and memory, in percent: the mean, and of the fullest node. The page at /ui/topology draws the same.`,
		"drover topology\ndrover topology -by class\ndrover topology -json")
	c.Flags().StringVar(&by, "by", by, "count by pool, datacenter or class")
	o.Bind(c.Flags())
	return c
}

func topology(ctx context.Context, app *term.App, o *term.Output, by string) error {
	api, err := app.Native()
	if err != nil {
		return err
	}
	t, err := api.Topology(ctx)
	if err != nil {
		return err
	}
	if done, err := o.Data(app.Out, t); done || err != nil {
		return err
	}
	groups, err := t.Groups(by)
	if err != nil {
		return drover.Errorf(drover.Invalid, "-by: %w", err)
	}
	rows := make([][]string, 0, len(groups))
	for _, g := range groups {
		name := term.OneLine(g.Name)
		if name == "" {
			name = "-"
		}
		rows = append(rows, []string{
			name, strconv.Itoa(g.Nodes), strconv.Itoa(g.States[cluster.NodeReady]), strconv.Itoa(g.States[cluster.NodeIneligible]),
			strconv.Itoa(g.States[cluster.NodeDraining]), strconv.Itoa(g.States[cluster.NodeGone] + g.States[cluster.NodeAway]),
			strconv.Itoa(g.States[cluster.NodeBegins]), strconv.Itoa(g.Allocations),
			fmt.Sprintf("%d %% (%d %%)", g.CPU, g.MostCPU), fmt.Sprintf("%d %% (%d %%)", g.Memory, g.MostMemory),
		})
	}
	return term.Table(app.Out, "No node is there.",
		"Group|Nodes|Ready|Ineligible|Draining|Down|Starting|Allocations|CPU (most)|Memory (most)", rows)
}
