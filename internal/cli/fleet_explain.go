package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

func (a *App) fleetStatusCommand() *cobra.Command {
	return a.fleetExplainer("status INSTANCE", "Show a machine")
}

func (a *App) fleetExplainCommand() *cobra.Command {
	c := a.fleetExplainer("explain INSTANCE|JOB", "Say why a machine is there, or what a job's waiting work waits for")
	with(c, "INSTANCE is an id or its beginning, or the cloud's id. Anything else is a job.", "drover fleet explain 3f2a\ndrover fleet explain my-job")
	return c
}

func (a *App) fleetExplainer(use, short string) *cobra.Command {
	o := &output{}
	c := leaf(use, short, 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		var x fleet.Explanation
		err = c.get(ctx, "/v1/fleet/instance/"+url.PathEscape(args[0]), nil, &x)
		if drover.CodeOf(err) == drover.NotFound && strings.HasPrefix(use, "explain") {
			return a.explainWaiting(ctx, c, o, args[0], err)
		}
		if err != nil {
			return err
		}
		if done, err := o.data(a.Out, x); done {
			return err
		}
		return a.showMachine(&x)
	})
	o.bind(c.Flags())
	return c
}

func (a *App) showMachine(x *fleet.Explanation) error {
	i := &x.Instance
	var jobs []string
	for _, j := range x.Jobs {
		jobs = append(jobs, j.Namespace+"/"+j.ID)
	}
	if err := facts(a.Out, "ID", i.ID, "Cloud's ID", i.ProviderID, "Pool", i.Pool, "Offering", i.Offering, "State", i.State.String(),
		"Behavior", string(i.Behavior), "Address", i.Address, "Node", i.NodeID, "Jobs", strings.Join(jobs, ", "), "Planned", stamp(i.PlannedAt),
		"Created", stamp(i.CreatedAt), "Ready", stamp(i.ReadyAt), "Gone", stamp(i.GoneAt), "Per hour", money(i.Price), "Cost", money(i.Charged)); err != nil {
		return err
	}
	section(a.Out, "Why")
	for _, t := range x.Text {
		fmt.Fprintln(a.Out, line(t)) // Out's errors are told by the table below
	}
	section(a.Out, "History")
	return table(a.Out, "Nothing is remembered.", "At|What|Why|Reason", auditRows(x.History))
}

func auditRows(list []fleet.Audit) (rows [][]string) {
	for _, e := range list {
		what := e.What
		if e.Count > 1 {
			what = fmt.Sprintf("%s %d", what, e.Count)
		}
		rows = append(rows, []string{stamp(e.At), what, e.Why, e.Reason})
	}
	return rows
}

// explainWaiting says what a job's work waits for.
func (a *App) explainWaiting(ctx context.Context, c *fleetAPI, o *output, job string, notFound error) error {
	var all, list []fleet.Waiting
	if err := c.get(ctx, "/v1/fleet/waiting", nil, &all); err != nil {
		return err
	}
	for _, w := range all {
		name := w.Class[:strings.LastIndexByte(w.Class, '/')+1]
		if strings.HasSuffix("/"+name, "/"+job+"/") || w.Class == job {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		if placed, err := a.explainPlaced(ctx, c, o, job); placed || err != nil {
			return err
		}
		return drover.Errorf(drover.NotFound, "%w; and no work of a job %q waits for the fleet's machines", notFound, job)
	}
	if done, err := o.data(a.Out, list); done {
		return err
	}
	return table(a.Out, "", waitingHeading, waitingRows(list))
}

// explainPlaced says on which machines a job's work runs; placed is false if there is no such job.
func (a *App) explainPlaced(ctx context.Context, c *fleetAPI, o *output, job string) (placed bool, err error) {
	var allocations []*drover.AllocationListStub
	if _, err := c.api.get(ctx, jobPath(job, "/allocations"), nil, &allocations); err != nil {
		return false, err
	}
	if len(allocations) == 0 {
		return false, nil
	}
	var machines []fleet.Instance
	if err := c.get(ctx, "/v1/fleet/instances", nil, &machines); err != nil {
		return false, err
	}
	at := map[string]*fleet.Instance{}
	for i := range machines {
		at[machines[i].NodeID] = &machines[i]
	}
	var rows [][]string
	for _, alloc := range allocations {
		if alloc.ClientStatus != drover.AllocClientRunning && alloc.ClientStatus != drover.AllocClientPending {
			continue
		}
		machine, pool, why := "-", "-", "it is on no machine of the fleet"
		if m := at[alloc.NodeID]; m != nil && alloc.NodeID != "" {
			machine, pool, why = o.id(m.ID), m.Pool, m.Bought
		}
		rows = append(rows, []string{alloc.Name, o.id(alloc.ID), alloc.ClientStatus, alloc.NodeName, machine, pool, why})
	}
	if done, err := o.data(a.Out, allocations); done {
		return true, err
	}
	fmt.Fprintf(a.Out, "No work of job %q waits for machines.\n", job)
	return true, table(a.Out, "None of it runs now.", "Work|Allocation|Status|Node|Machine|Pool|Bought for", rows)
}

const waitingHeading = "Work|Pool|Waits|Since|Place|Room|Bought|Ready|Why"

func waitingRows(list []fleet.Waiting) (rows [][]string) {
	for _, w := range list {
		rows = append(rows, []string{
			w.Class, w.Pool, fmt.Sprint(w.Count), ago(w.Since.UnixNano()), fmt.Sprintf("%d of %d", w.Position, w.Of), fmt.Sprint(w.Placed),
			fmt.Sprint(w.Bought), stamp(w.ReadyAt), w.Reason,
		})
	}
	return rows
}

func (a *App) fleetPlanCommand() *cobra.Command {
	o := &output{}
	c := leaf("plan [POOL]", "Show what the fleet would do now, and why, without doing it", 0, 1, func(ctx context.Context, args []string) error {
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		q := url.Values{}
		if len(args) > 0 {
			q.Set("pool", args[0])
		}
		var plans []fleet.Plan
		if err := c.get(ctx, "/v1/fleet/plan", q, &plans); err != nil {
			return err
		}
		if done, err := o.data(a.Out, plans); done {
			return err
		}
		if len(plans) == 0 {
			fmt.Fprintln(a.Out, "There are no pools.")
		}
		for n := range plans {
			if err := a.showPlan(o, &plans[n]); err != nil {
				return err
			}
		}
		return nil
	})
	o.bind(c.Flags())
	return c
}

func (a *App) showPlan(o *output, p *fleet.Plan) error {
	fmt.Fprintf(a.Out, "Pool %s at %s\n", p.Pool, stamp(p.At)) // Out's errors are told by the tables below
	if p.Note != "" {
		fmt.Fprintln(a.Out, "Note:", p.Note)
	}
	if p.Deferred > 0 {
		fmt.Fprintf(a.Out, "Note: %d more machines are wanted, and wait for their turn\n", p.Deferred)
	}
	var rows [][]string
	for _, x := range p.Actions {
		what, about := x.Kind, o.id(x.Instance)
		if x.Count > 0 {
			what, about = fmt.Sprintf("%s %d", x.Kind, x.Count), x.Offering
		}
		rows = append(rows, []string{what, about, money(x.PerHour), x.Why, x.Reason})
	}
	if err := table(a.Out, "Nothing is to be done.", "Action|What|Per hour|Why|Reason", rows); err != nil {
		return err
	}
	if len(p.Waiting) > 0 {
		section(a.Out, "Waiting work")
		return table(a.Out, "", waitingHeading, waitingRows(p.Waiting))
	}
	return nil
}
