package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) statusCommand() *cobra.Command {
	o := &output{}
	c := leaf("status [ID]", "List jobs, or show whatever the id belongs to", 0, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return a.jobList(ctx, c, o)
		}
		return a.statusOf(ctx, c, o, args[0])
	})
	with(c, "Finds a job, allocation, node, evaluation, deployment, node pool or namespace by the beginning of its id.", "drover status\ndrover status web\ndrover status 3f2a")
	o.bind(c.Flags())
	return c
}

// statusOf searches and shows the one that is found.
func (a *App) statusOf(ctx context.Context, c *api, o *output, prefix string) error {
	var r struct{ Matches map[string][]string }
	if err := c.put(ctx, "/v1/search", c.anywhere(), map[string]string{"Prefix": prefix, "Context": "all"}, &r); err != nil {
		return err
	}
	shows := map[string]func(id string) error{
		"jobs":   func(id string) error { return a.jobStatus(ctx, c, o, id) },
		"allocs": func(id string) error { return a.allocStatus(ctx, c, o, id, false) },
		"nodes":  func(id string) error { return a.nodeStatus(ctx, c, &nodeStatusFlags{output: *o}, id) },
		"evals": func(id string) error {
			e, err := c.eval(ctx, id)
			if err != nil {
				return err
			}
			return a.evalStatus(ctx, c, o, e)
		},
		"deployment": func(id string) error {
			d, err := c.deployment(ctx, id)
			if err != nil {
				return err
			}
			return a.deploymentFacts(o, d)
		},
	}
	var found []string
	kind, id := "", ""
	for _, k := range slices.Sorted(maps.Keys(shows)) {
		ids := r.Matches[k]
		if slices.Contains(ids, prefix) {
			return shows[k](prefix)
		}
		for _, match := range ids {
			kind, id = k, match
			found = append(found, strings.TrimSuffix(k, "s")+"  "+match)
		}
	}
	switch len(found) {
	case 0:
		return drover.Errorf(drover.NotFound, "nothing begins with %q", prefix)
	case 1:
		return shows[kind](id)
	}
	return drover.Errorf(drover.Invalid, "%s", fmt.Sprintf("%d things begin with %q:\n  %s", len(found), prefix, strings.Join(found, "\n  ")))
}
