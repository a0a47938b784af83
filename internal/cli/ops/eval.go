package ops

import (
	"context"
	"fmt"
	"maps"
	"net/http"
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
	return term.Group("eval", "Look at evaluations: the scheduler's decisions", evalListCommand(app), evalStatusCommand(app),
		evalDeleteCommand(app))
}

// evalListCommand is "drover eval list", newest first. Filters are applied by the server.
func evalListCommand(app *term.App) *cobra.Command {
	o, page := &term.Output{}, &term.Page{}
	var job, status string
	c := term.Command(app, "list", "List evaluations", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*drover.Evaluation]{
			Path: "/v1/evaluations", Query: api.Query("job", job, "status", status), Page: page,
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
	page.Bind(c.Flags(), `TriggeredBy == "node-update"`)
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

// evalDeleteCommand is "drover eval delete". The server refuses it unless its broker is paused, as it may be deciding about them.
func evalDeleteCommand(app *term.App) *cobra.Command {
	filter, yes := "", false
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if (filter != "") == (len(args) > 0) {
			return drover.Errorf(drover.Invalid, "name evaluations, or give -filter")
		}
		var ids []string
		for _, prefix := range args {
			e, err := c.Evaluation(ctx, prefix)
			if err != nil {
				return err
			}
			ids = append(ids, e.ID)
		}
		if filter != "" && !yes {
			var matching struct{ Count int }
			if _, err := c.Get(ctx, "/v1/evaluations/count", api.Query("filter", filter), &matching); err != nil {
				return err
			}
			if err := app.Confirm(ctx, "Delete "+term.Plural(matching.Count, "evaluation")+"?"); err != nil {
				return err
			}
		}
		var deleted struct{ Count int }
		_, err := c.Call(ctx, http.MethodDelete, "/v1/evaluations", nil, map[string]any{"EvalIDs": ids, "Filter": filter}, &deleted)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Deleted %s.\n", term.Plural(deleted.Count, "evaluation"))
		return err
	}
	c := term.NomadCommand(app, "delete [EVAL]…", "Delete evaluations, when too many wait for the scheduler", 0, -1, run)
	term.Describe(c, `
Evaluations go by themselves some time after they ended: this is for a cluster that has too many of them. The scheduler must be paused
before, by 'drover operator scheduler set-config -pause-eval-broker=true'.`, `drover eval delete 3f2a
drover eval delete -filter 'Status == "canceled"'`)
	c.Flags().StringVar(&filter, "filter", "", "delete those that match this expression and have ended")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}
