package fleet

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// statusCommand is "drover fleet status". It is "explain" for machines only: a job's name is not found.
func statusCommand(app *term.App) *cobra.Command {
	return showMachineCommand(app, "status [INSTANCE]", "Show a machine, or in what the asked server's configuration has other pools")
}

// explainCommand is "drover fleet explain", for a machine or a job. A word is looked up as a machine first.
func explainCommand(app *term.App) *cobra.Command {
	c := showMachineCommand(app, "explain INSTANCE|JOB", "Say why a machine is there, or what a job's waiting work waits for")
	term.Describe(c, "INSTANCE is an id or its beginning, or the cloud's id. Anything else is a job.", `drover fleet explain 3f2a
drover fleet explain my-job`)
	return c
}

// showMachineCommand makes "status" and "explain", which differ in what they do with a word that names no machine.
func showMachineCommand(app *term.App, use, short string) *cobra.Command {
	o := &term.Output{}
	least := 1
	if strings.Contains(use, "[") {
		least = 0
	}
	c := command(app, use, short, least, 1, func(ctx context.Context, c *client, args []string) error {
		if len(args) == 0 {
			return showDifferences(ctx, app, c, o)
		}
		var x fleet.Explanation
		err := c.get(ctx, "/v1/fleet/instance/"+url.PathEscape(args[0]), nil, &x)
		if drover.CodeOf(err) == drover.NotFound && strings.HasPrefix(use, "explain") {
			return explainWaiting(ctx, app, c, o, args[0], err)
		}
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, x); done {
			return err
		}
		return showMachine(app, &x)
	})
	o.Bind(c.Flags())
	return c
}

// showMachine prints what the machine is, the reasons for its being there, and its history.
func showMachine(app *term.App, x *fleet.Explanation) error {
	i := &x.Instance
	var jobs []string
	for _, j := range x.Jobs {
		jobs = append(jobs, j.Namespace+"/"+j.ID)
	}
	if err := term.Facts(app.Out, "ID", i.ID, "Cloud's ID", i.ProviderID, "Pool", i.Pool, "Offering", i.Offering, "State", i.State.String(),
		"Behavior", string(i.Behavior), "Address", i.Address, "Node", i.NodeID,
		"Jobs", strings.Join(jobs, ", "), "Planned", term.Stamp(i.PlannedAt),
		"Created", term.Stamp(i.CreatedAt), "Ready", term.Stamp(i.ReadyAt), "Gone", term.Stamp(i.GoneAt),
		"Per hour", money(i.Price), "Cost", money(i.Charged)); err != nil {
		return err
	}
	term.Section(app.Out, "Why")
	for _, t := range x.Text {
		fmt.Fprintln(app.Out, term.OneLine(t)) // Out's errors are told by the table below
	}
	term.Section(app.Out, "History")
	return term.Table(app.Out, "Nothing is remembered.", "At|What|Why|Reason", auditRows(x.History))
}

// auditRows makes a row for each entry: time, what was done (with a count above 1), the rule, and the reason in
// words.
func auditRows(list []fleet.Audit) (rows [][]string) {
	for _, e := range list {
		what := e.What
		if e.Count > 1 {
			what = fmt.Sprintf("%s %d", what, e.Count)
		}
		rows = append(rows, []string{term.Stamp(e.At), what, e.Why, e.Reason})
	}
	return rows
}

// explainWaiting says what a job's work waits for. If none of it waits, it says where the work runs. notFound is the
// answer for the same word as a machine, and stands in the error if there is no such job either. Errors: NotFound;
// the API's.
func explainWaiting(ctx context.Context, app *term.App, c *client, o *term.Output, job string, notFound error) error {
	var all, list []fleet.Waiting
	if err := c.get(ctx, "/v1/fleet/waiting", nil, &all); err != nil {
		return err
	}
	for _, w := range all {
		// A class is job/group, with the namespace before it unless that is the default one. The job may be named with or
		// without it.
		name := w.Class[:strings.LastIndexByte(w.Class, '/')+1]
		if strings.HasSuffix("/"+name, "/"+job+"/") || w.Class == job {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		if placed, err := explainPlaced(ctx, app, c, o, job); placed || err != nil {
			return err
		}
		return drover.Errorf(drover.NotFound, "%w; and no work of a job %q waits for the fleet's machines", notFound, job)
	}
	if done, err := o.Data(app.Out, list); done {
		return err
	}
	return term.Table(app.Out, "", waitingHeading, waitingRows(list))
}

// explainPlaced says on which machines a job's running and pending work is. placed is false if the job has no
// allocations, or does not exist. A template or -json gets all allocations. Errors: the API's.
func explainPlaced(ctx context.Context, app *term.App, c *client, o *term.Output, job string) (placed bool, err error) {
	var allocations []*drover.AllocationListStub
	if _, err := c.Client.Get(ctx, api.JobPath(job, "/allocations"), nil, &allocations); err != nil {
		return false, err
	}
	if len(allocations) == 0 {
		return false, nil
	}
	var machines []fleet.Instance
	if err := c.get(ctx, "/v1/fleet/instances", nil, &machines); err != nil {
		return false, err
	}
	// Machines that boot have no node yet and share the key "", which the lookup below leaves out.
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
			machine, pool, why = o.ID(m.ID), m.Pool, m.Bought
		}
		rows = append(rows, []string{alloc.Name, o.ID(alloc.ID), alloc.ClientStatus, alloc.NodeName, machine, pool, why})
	}
	if done, err := o.Data(app.Out, allocations); done {
		return true, err
	}
	fmt.Fprintf(app.Out, "No work of job %q waits for machines.\n", job)
	return true, term.Table(app.Out, "None of it runs now.", "Work|Allocation|Status|Node|Machine|Pool|Bought for", rows)
}

// waitingHeading is for the rows of waitingRows.
const waitingHeading = "Work|Pool|Waits|Since|Place|Room|Bought|Ready|Why"

// waitingRows makes a row for each class of work. Room and Bought count pieces of work, not machines.
func waitingRows(list []fleet.Waiting) (rows [][]string) {
	for _, w := range list {
		rows = append(rows, []string{
			w.Class, w.Pool, fmt.Sprint(w.Count), term.Ago(w.Since.UnixNano()), fmt.Sprintf("%d of %d", w.Position, w.Of), fmt.Sprint(w.Placed),
			fmt.Sprint(w.Bought), term.Stamp(w.ReadyAt), w.Reason,
		})
	}
	return rows
}

// planCommand is "drover fleet plan", of one pool or of all. It is a dry run of what the fleet decides by itself.
func planCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *client, args []string) error {
		q := url.Values{}
		if len(args) > 0 {
			q.Set("pool", args[0])
		}
		var plans []fleet.Plan
		if err := c.get(ctx, "/v1/fleet/plan", q, &plans); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, plans); done {
			return err
		}
		if len(plans) == 0 {
			fmt.Fprintln(app.Out, "There are no pools.")
		}
		for n := range plans {
			if err := showPlan(app, o, &plans[n]); err != nil {
				return err
			}
		}
		return nil
	}
	c := command(app, "plan [POOL]", "Show what the fleet would do now, and why, without doing it", 0, 1, run)
	o.Bind(c.Flags())
	return c
}

// showPlan prints a pool's plan: notes, actions, and the work that waits. An action with a count buys machines of an
// offering; one without is about one machine.
func showPlan(app *term.App, o *term.Output, p *fleet.Plan) error {
	fmt.Fprintf(app.Out, "Pool %s at %s\n", p.Pool, term.Stamp(p.At)) // Out's errors are told by the tables below
	if p.Note != "" {
		fmt.Fprintln(app.Out, "Note:", p.Note)
	}
	if p.Deferred > 0 {
		fmt.Fprintf(app.Out, "Note: %d more machines are wanted, and wait for their turn\n", p.Deferred)
	}
	var rows [][]string
	for _, x := range p.Actions {
		what, about := string(x.Kind), o.ID(x.Instance)
		if x.Count > 0 {
			what, about = fmt.Sprintf("%s %d", x.Kind, x.Count), x.Offering
		}
		rows = append(rows, []string{what, about, money(x.PerHour), x.Why, x.Reason})
	}
	if err := term.Table(app.Out, "Nothing is to be done.", "Action|What|Per hour|Why|Reason", rows); err != nil {
		return err
	}
	if len(p.Waiting) > 0 {
		term.Section(app.Out, "Waiting work")
		return term.Table(app.Out, "", waitingHeading, waitingRows(p.Waiting))
	}
	return nil
}
