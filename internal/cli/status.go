package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/alloc"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/job"
	"github.com/drover-project/drover/internal/cli/node"
	"github.com/drover-project/drover/internal/cli/ops"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// statusCommand is "drover status". Without an id it is "job status"; a job's whole name comes before everything that
// only begins so.
func statusCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if len(args) == 0 {
			return job.List(ctx, app, c, o, nil)
		}
		return showFound(ctx, app, c, o, args[0])
	}
	c := term.NomadCommand(app, "status [ID]", "List jobs, or show whatever the id belongs to", 0, 1, run)
	term.Describe(c, "Finds a job, allocation, node, evaluation, deployment, node pool or namespace by the beginning of its id.", `
drover status
drover status web
drover status 3f2a`)
	o.Bind(c.Flags())
	return c
}

// showFound searches for a prefix and shows the one thing that it finds. What the API finds but has no page here, such as a node
// pool, is passed over. Errors: NotFound; Invalid; the API's.
func showFound(ctx context.Context, app *term.App, c *api.Client, o *term.Output, prefix string) error {
	shows := map[string]func(id string) error{
		"jobs": func(id string) error { return job.Show(ctx, app, c, &job.StatusFlags{Output: *o}, id) },
		// Statistics would ask the node, which may be down.
		"allocs": func(id string) error { return alloc.Show(ctx, app, c, &alloc.StatusFlags{Output: *o}, id) },
		"nodes":  func(id string) error { return node.Show(ctx, app, c, &node.StatusFlags{Output: *o}, id) },
		"evals": func(id string) error {
			e, err := c.Evaluation(ctx, id)
			if err != nil {
				return err
			}
			return ops.ShowEvaluation(ctx, app, c, o, e)
		},
		"deployment": func(id string) error {
			d, err := c.Deployment(ctx, id)
			if err != nil {
				return err
			}
			return view.Deployment(app, o, d)
		},
	}
	// In a fixed order, so that the same id always leads to the same page.
	kind, id, err := find(ctx, c, prefix, slices.Sorted(maps.Keys(shows)))
	if err != nil {
		return err
	}
	return shows[kind](id)
}

// find searches for the one thing of these kinds whose id begins with prefix. An exact id is found even if others begin so; of
// several kinds it is the first. Errors: NotFound; Invalid; the API's.
func find(ctx context.Context, c *api.Client, prefix string, kinds []string) (kind, id string, err error) {
	var r struct{ Matches map[string][]string }
	if err := c.Put(ctx, "/v1/search", c.Anywhere(), map[string]string{"Prefix": prefix, "Context": "all"}, &r); err != nil {
		return "", "", err
	}
	var found []string
	for _, k := range kinds {
		ids := r.Matches[k]
		if slices.Contains(ids, prefix) {
			return k, prefix, nil
		}
		for _, match := range ids {
			kind, id = k, match
			found = append(found, strings.TrimSuffix(k, "s")+"  "+match)
		}
	}
	switch len(found) {
	case 0:
		return "", "", drover.Errorf(drover.NotFound, "nothing begins with %q", prefix)
	case 1:
		return kind, id, nil
	}
	return "", "", drover.Errorf(drover.Invalid, "%d things begin with %q:\n  %s", len(found), prefix, strings.Join(found, "\n  "))
}
