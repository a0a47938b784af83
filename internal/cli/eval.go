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

func (a *App) evalCommand() *cobra.Command {
	return group("eval", "Look at evaluations: the scheduler's decisions", a.evalListCommand(), a.evalStatusCommand())
}

func (a *App) evalListCommand() *cobra.Command {
	o := &output{}
	var job, status string
	c := leaf("list", "List evaluations", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var list []*drover.Evaluation
		if _, err := c.get(ctx, "/v1/evaluations", query("job", job, "status", status), &list); err != nil {
			return err
		}
		slices.SortStableFunc(list, func(x, y *drover.Evaluation) int { return int(y.CreateIndex) - int(x.CreateIndex) })
		if done, err := o.data(a.Out, list); done {
			return err
		}
		var rows [][]string
		for _, e := range list {
			rows = append(rows, []string{o.id(e.ID), strconv.Itoa(e.Priority), e.TriggeredBy, e.JobID, e.Status, yes(len(e.FailedTGAllocs) > 0), ago(e.CreateTime)})
		}
		return table(a.Out, "There are none.", "ID|Priority|Triggered by|Job|Status|Unplaced|Created", rows)
	})
	c.Flags().StringVar(&job, "job", "", "only of this job")
	c.Flags().StringVar(&status, "status", "", "only with this status")
	o.bind(c.Flags())
	return c
}

func (a *App) evalStatusCommand() *cobra.Command {
	o := &output{}
	var follow bool
	c := leaf("status EVAL", "Show an evaluation and what it could not place", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		e, err := c.eval(ctx, args[0])
		if err != nil {
			return err
		}
		if follow {
			return a.follow(ctx, c, e.ID, following{verbose: o.verbose})
		}
		if done, err := o.data(a.Out, e); done {
			return err
		}
		return a.evalStatus(ctx, c, o, e)
	})
	c.Flags().BoolVar(&follow, "monitor", false, "follow it")
	o.bind(c.Flags())
	return c
}

func (a *App) evalStatus(ctx context.Context, c *api, o *output, e *drover.Evaluation) error {
	if err := facts(a.Out, "ID", e.ID, "Job", e.JobID, "Namespace", e.Namespace, "Type", e.Type, "Triggered by", e.TriggeredBy,
		"Priority", strconv.Itoa(e.Priority), "Status", e.Status, "Description", e.StatusDescription, "Waits until", stamp(e.WaitUntil),
		"Follows", o.id(e.PreviousEval), "Followed by", o.id(e.NextEval), "Rest waits in", o.id(e.BlockedEval),
		"Deployment", o.id(e.DeploymentID), "Node", o.id(e.NodeID), "Created", nanos(e.CreateTime), "Modified", nanos(e.ModifyTime)); err != nil {
		return err
	}
	if p := e.PlanAnnotations; p != nil {
		for _, g := range slices.Sorted(maps.Keys(p.DesiredTGUpdates)) {
			fmt.Fprintf(a.Out, "Group %q: place %d, stop %d\n", g, p.DesiredTGUpdates[g].Place, p.DesiredTGUpdates[g].Stop)
		}
	}
	if len(e.FailedTGAllocs) > 0 {
		section(a.Out, "Not placed")
		explain(a.Out, "", e.FailedTGAllocs)
	}
	var allocs []*drover.AllocationListStub
	if _, err := c.get(ctx, "/v1/evaluation/"+e.ID+"/allocations", inNamespace(e.Namespace), &allocs); err != nil {
		return err
	}
	section(a.Out, "Allocations")
	return a.allocTable(o, allocs)
}
