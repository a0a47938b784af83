package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) deploymentCommand() *cobra.Command {
	return group("deployment", "Watch and steer deployments: the roll-out of a service's version",
		a.deploymentListCommand(), a.deploymentStatusCommand(), a.deploymentPromoteCommand(), a.deploymentFailCommand(),
		a.deploymentPauseCommand("pause", "Pause a deployment", true), a.deploymentPauseCommand("resume", "Go on with a paused deployment", false))
}

func (a *App) deploymentListCommand() *cobra.Command {
	o := &output{}
	c := leaf("list", "List deployments", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var list []*drover.Deployment
		if _, err := c.get(ctx, "/v1/deployments", nil, &list); err != nil {
			return err
		}
		slices.SortStableFunc(list, func(x, y *drover.Deployment) int { return int(y.CreateIndex) - int(x.CreateIndex) })
		if done, err := o.data(a.Out, list); done {
			return err
		}
		var rows [][]string
		for _, d := range list {
			rows = append(rows, []string{o.id(d.ID), d.JobID, strconv.FormatUint(d.JobVersion, 10), d.Status, d.StatusDescription})
		}
		return table(a.Out, "There are none.", "ID|Job|Version|Status|Description", rows)
	})
	o.bind(c.Flags())
	return c
}

// deploymentFacts shows a deployment and its groups.
func (a *App) deploymentFacts(o *output, d *drover.Deployment) error {
	if err := facts(a.Out, "ID", o.id(d.ID), "Job", d.JobID, "Version", strconv.FormatUint(d.JobVersion, 10), "Status", d.Status,
		"Description", d.StatusDescription); err != nil {
		return err
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
		g := d.TaskGroups[name]
		promoted := "-" // there are no canaries
		if g.DesiredCanaries > 0 {
			promoted = yes(g.Promoted)
		}
		row := []string{name, promoted}
		for _, n := range []int{g.DesiredTotal, g.DesiredCanaries, g.PlacedAllocs, g.HealthyAllocs, g.UnhealthyAllocs} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, append(row, stamp(g.RequireProgressBy)))
	}
	return table(a.Out, "", "Group|Promoted|Desired|Canaries|Placed|Healthy|Unhealthy|Progress by", rows)
}

func (a *App) deploymentStatusCommand() *cobra.Command {
	o := &output{}
	var watch bool
	c := leaf("status DEPLOYMENT", "Show a deployment", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		d, err := c.deployment(ctx, args[0])
		if err != nil {
			return err
		}
		if watch {
			return a.watchDeployment(ctx, c, d)
		}
		if done, err := o.data(a.Out, d); done {
			return err
		}
		return a.deploymentFacts(o, d)
	})
	with(c, "With -monitor it follows the deployment to its end, and exits with 1 if it failed.", "drover deployment status 4c1d\ndrover deployment status -monitor 4c1d")
	c.Flags().BoolVar(&watch, "monitor", false, "follow it to its end")
	o.bind(c.Flags())
	return c
}

func (a *App) watchDeployment(ctx context.Context, c *api, d *drover.Deployment) error {
	var index uint64
	for {
		next, err := c.get(ctx, "/v1/deployment/"+d.ID, blocking(inNamespace(d.Namespace), index), d)
		if err != nil {
			return err
		}
		index = next
		for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
			g := d.TaskGroups[name]
			fmt.Fprintf(a.Out, "    %s: %d of %d placed, %d healthy, %d unhealthy\n", name, g.PlacedAllocs, g.DesiredTotal, g.HealthyAllocs, g.UnhealthyAllocs)
		}
		if d.Active() {
			continue
		}
		fmt.Fprintf(a.Out, "==> Deployment %s is %s: %s\n", short(d.ID), d.Status, d.StatusDescription)
		if d.Status != drover.DeploymentSuccessful {
			return &exitError{code: exitFailure}
		}
		return nil
	}
}

// steer does something to a deployment and follows the evaluation that comes of it.
func (a *App) steer(ctx context.Context, prefix, action string, f following, body map[string]any) error {
	c, err := a.asks()
	if err != nil {
		return err
	}
	d, err := c.deployment(ctx, prefix)
	if err != nil {
		return err
	}
	body["DeploymentID"] = d.ID
	var r struct {
		registered
		RevertedJobVersion *uint64
	}
	if err := c.put(ctx, "/v1/deployment/"+action+"/"+d.ID, inNamespace(d.Namespace), body, &r); err != nil {
		return err
	}
	if r.RevertedJobVersion != nil {
		fmt.Fprintf(a.Out, "The job goes back to version %d.\n", *r.RevertedJobVersion)
	}
	if r.EvalID == "" {
		return nil
	}
	return a.follow(ctx, c, r.EvalID, f)
}

func (a *App) deploymentPromoteCommand() *cobra.Command {
	f := &following{}
	var groups []string
	c := leaf("promote DEPLOYMENT", "Let the canaries' version replace the old one", 1, 1, func(ctx context.Context, args []string) error {
		return a.steer(ctx, args[0], "promote", *f, map[string]any{"All": len(groups) == 0, "Groups": groups})
	})
	c.Flags().StringArrayVar(&groups, "group", nil, "only this group; can be repeated")
	f.bind(c)
	return c
}

func (a *App) deploymentFailCommand() *cobra.Command {
	f := &following{}
	c := leaf("fail DEPLOYMENT", "End a deployment as failed", 1, 1, func(ctx context.Context, args []string) error {
		return a.steer(ctx, args[0], "fail", *f, map[string]any{})
	})
	f.bind(c)
	return c
}

func (a *App) deploymentPauseCommand(name, about string, pause bool) *cobra.Command {
	f := &following{}
	c := leaf(name+" DEPLOYMENT", about, 1, 1, func(ctx context.Context, args []string) error {
		return a.steer(ctx, args[0], "pause", *f, map[string]any{"Pause": pause})
	})
	f.bind(c)
	return c
}
