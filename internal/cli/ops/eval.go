package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// EvalCommand is "drover eval".
func EvalCommand(app *term.App) *cobra.Command {
	return term.Group("eval", "Look at evaluations: the scheduler's decisions", evalListCommand(app), evalStatusCommand(app))
}

// evalListCommand is "drover eval list", newest first. Filters are applied by the server.
func evalListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var job, status string
	c := term.Command(app, "list", "List evaluations", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*drover.Evaluation]{
			Path: "/v1/evaluations", Query: api.Query("job", job, "status", status),
			Compare: func(x, y *drover.Evaluation) int { return int(y.CreateIndex) - int(x.CreateIndex) },
			None:    "There are none.", Heading: "ID|Priority|Triggered by|Job|Status|Unplaced|Created",
			Row: func(e *drover.Evaluation) []string {
				unplaced := term.YesNo(len(e.FailedTGAllocs) > 0)
				return []string{o.ID(e.ID), strconv.Itoa(e.Priority), e.TriggeredBy, e.JobID, e.Status, unplaced, term.Ago(e.CreateTime)}
			},
		})
	})
	c.Flags().StringVar(&job, "job", "", "only of this job")
	c.Flags().StringVar(&status, "status", "", "only with this status")
	o.Bind(c.Flags())
	return c
}

// evalStatusCommand is "drover eval status". With -monitor it follows the evaluation, and ends as "job run" does.
func evalStatusCommand(app *term.App) *cobra.Command {
	k := &one[*drover.Evaluation]{
		find: (*api.Client).Evaluation,
		follow: func(ctx context.Context, app *term.App, c *api.Client, o *term.Output, e *drover.Evaluation) error {
			return follow.Evaluation(ctx, app, c, e.ID, follow.Options{Verbose: o.Verbose})
		},
		show: ShowEvaluation,
	}
	return k.command(app, "status EVAL", "Show an evaluation and what it could not place", "follow it")
}

// ShowEvaluation prints an evaluation, what it could not place, and its allocations. Errors: the API's.
func ShowEvaluation(ctx context.Context, app *term.App, c *api.Client, o *term.Output, e *drover.Evaluation) error {
	if err := term.Facts(app.Out, "ID", e.ID, "Job", e.JobID, "Namespace", e.Namespace, "Type", e.Type, "Triggered by", e.TriggeredBy,
		"Priority", strconv.Itoa(e.Priority), "Status", e.Status, "Description", e.StatusDescription, "Waits until", term.Stamp(e.WaitUntil),
		"Follows", o.ID(e.PreviousEval), "Followed by", o.ID(e.NextEval), "Rest waits in", o.ID(e.BlockedEval),
		"Deployment", o.ID(e.DeploymentID), "Node", o.ID(e.NodeID),
		"Created", term.StampNanos(e.CreateTime), "Modified", term.StampNanos(e.ModifyTime)); err != nil {
		return err
	}
	// Only evaluations that were made with AnnotatePlan have them.
	if p := e.PlanAnnotations; p != nil {
		for _, g := range slices.Sorted(maps.Keys(p.DesiredTGUpdates)) {
			fmt.Fprintf(app.Out, "Group %q: place %d, stop %d\n", g, p.DesiredTGUpdates[g].Place, p.DesiredTGUpdates[g].Stop)
		}
	}
	if len(e.FailedTGAllocs) > 0 {
		term.Section(app.Out, "Not placed")
		view.ExplainUnplaced(app.Out, "", e.FailedTGAllocs)
	}
	var allocs []*drover.AllocationListStub
	if _, err := c.Get(ctx, "/v1/evaluation/"+e.ID+"/allocations", api.InNamespace(e.Namespace), &allocs); err != nil {
		return err
	}
	term.Section(app.Out, "Allocations")
	return view.Allocations(app, o, allocs)
}
