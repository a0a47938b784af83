package job

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// StatusFlags say what of a job is shown, and how. "drover status" makes one from its own Output.
type StatusFlags struct {
	term.Output
	short, evals, allAllocs bool
	page                    term.Page // of a list
}

// statusCommand is "drover job status". Without a job it lists those of the namespace.
func statusCommand(app *term.App) *cobra.Command {
	f := &StatusFlags{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if len(args) == 0 {
			return List(ctx, app, c, &f.Output, &f.page)
		}
		return Show(ctx, app, c, f, args[0])
	}
	c := term.NomadCommand(app, "status [JOB]", "List jobs, or show one with its allocations", 0, 1, run)
	term.Describe(c, `Lists the jobs of the namespace (-namespace '*': of all), or shows one: its counts, why something of it is not
placed, its deployment and its allocations.`,
		`drover job status
drover job status -namespace '*'
drover job status -search web -status running -sort -submitted -per-page 50
drover job status web
drover job status -t '{{.Job.Status}}' web`)
	f.Bind(c.Flags())
	c.Flags().BoolVar(&f.short, "short", false, "only what the job is, without counts and allocations")
	c.Flags().BoolVar(&f.evals, "evals", false, "its evaluations too, newest first")
	c.Flags().BoolVar(&f.allAllocs, "all-allocs", false, "allocations of an earlier job of this name too")
	f.page.BindSearch(c.Flags(), `Type == "batch"`, "pending, running, dead",
		"name, namespace, type, status, priority, submitted or modified")
	return c
}

// environmentMeta is the key of the metadata that jobs of environments have, which 'drover env' looks after.
const environmentMeta = "drover.environment"

// List prints the jobs of the chosen namespace. People are not shown those that environments are made of; programs are, as in
// Nomad. Errors: the API's.
func List(ctx context.Context, app *term.App, c *api.Client, o *term.Output, page *term.Page) error {
	q := page.Query(url.Values{})
	if !o.JSON && o.Template == "" {
		q.Set("meta", "true")
	}
	var list []*drover.JobListStub
	h, err := c.Call(ctx, http.MethodGet, "/v1/jobs", q, nil, &list)
	if err != nil {
		return err
	}
	if done, err := o.Data(app.Out, list); done {
		return err
	}
	all, heading := c.Namespace == "*", "ID|Type|Priority|Status|Submitted"
	if all {
		heading = "ID|Namespace|Type|Priority|Status|Submitted"
	}
	var rows [][]string
	environments := 0
	for _, j := range list {
		if _, is := j.Meta[environmentMeta]; is {
			environments++
			continue
		}
		row := []string{j.ID}
		if all {
			row = append(row, j.Namespace)
		}
		rows = append(rows, append(row, kind(j.Type, j.Periodic, j.ParameterizedJob), strconv.Itoa(j.Priority), state(j.Status, j.Stop),
			term.Ago(j.SubmitTime)))
	}
	if err := term.Table(app.Out, "There are no jobs.", heading, rows); err != nil {
		return err
	}
	term.More(app, h)
	if environments == 0 {
		return nil
	}
	_, err = fmt.Fprintf(app.Err, "The jobs of %s are left out: 'drover env list' shows them.\n", term.Plural(environments, "environment"))
	return err
}

// kind returns a job's type as lists show it, such as "batch/periodic".
func kind(kind string, periodic, parameterized bool) string {
	if periodic {
		kind += "/periodic"
	}
	if parameterized {
		kind += "/parameterized"
	}
	return kind
}

// state returns a job's status, marked if somebody stopped it: a stopped job is "dead", as one that ended by itself
// is.
func state(status string, stopped bool) string {
	if stopped {
		return status + " (stopped)"
	}
	return status
}

// status is what "job status" shows of one job, and its shape for -json and -t. The lists are sorted, newest first.
// Deployment is nil for jobs without one; Summary is nil if the server has none.
type status struct {
	Job         *drover.Job
	Summary     *drover.JobSummary
	Evaluations []*drover.Evaluation
	Deployment  *drover.Deployment
	Allocations []*drover.AllocationListStub
}

// readStatus reads the job and what belongs to it, in one request for each part. The parts can therefore be of
// different moments. Errors: the API's, with the name of the part; NotFound; Invalid when several jobs begin so.
func readStatus(ctx context.Context, c *api.Client, f *StatusFlags, prefix string) (*status, error) {
	j, err := c.Job(ctx, prefix)
	if err != nil {
		return nil, err
	}
	v := &status{Job: j}
	for suffix, out := range map[string]any{
		"/summary": &v.Summary, "/evaluations": &v.Evaluations, "/deployment": &v.Deployment, "/allocations": &v.Allocations,
	} {
		q := api.InNamespace(j.Namespace)
		if f.allAllocs {
			q.Set("all", "true")
		}
		if _, err := c.Get(ctx, api.JobPath(j.ID, suffix), q, out); err != nil {
			return nil, fmt.Errorf("reading the job's %s: %w", strings.TrimPrefix(suffix, "/"), err)
		}
	}
	slices.SortFunc(v.Evaluations, func(x, y *drover.Evaluation) int { return int(y.CreateIndex) - int(x.CreateIndex) })
	view.SortNewestFirst(v.Allocations)
	return v, nil
}

// Show prints the job whose id begins with prefix. A job that only starts others is shown with its launches instead
// of a deployment and allocations. Errors: the API's; NotFound; Invalid when several begin so.
func Show(ctx context.Context, app *term.App, c *api.Client, f *StatusFlags, prefix string) error {
	v, err := readStatus(ctx, c, f, prefix)
	if err != nil {
		return err
	}
	if done, err := f.Data(app.Out, v); done {
		return err
	}
	j := v.Job
	if err := term.Facts(app.Out, "ID", j.ID, "Name", j.Name, "Submitted", term.StampNanos(j.SubmitTime),
		"Type", kind(j.Type, j.Periodic != nil, j.ParameterizedJob != nil), "Priority", strconv.Itoa(j.Priority),
		"Datacenters", strings.Join(j.Datacenters, ", "), "Namespace", j.Namespace, "Node pool", j.NodePool,
		"Status", state(j.Status, j.Stop), "Version", strconv.FormatUint(j.Version, 10), "Parent", j.ParentID); err != nil || f.short {
		return err
	}
	if err := showSummary(app, v); err != nil {
		return err
	}
	if f.evals {
		if err := showEvaluations(app, &f.Output, v.Evaluations); err != nil {
			return err
		}
	}
	if len(v.Evaluations) > 0 {
		showUnplaced(app, v.Evaluations)
	}
	if j.Periodic != nil || j.Parameterized() {
		return showLaunches(ctx, app, c, j)
	}
	if v.Deployment != nil {
		term.Section(app.Out, "Latest deployment")
		if err := view.Deployment(app, &f.Output, v.Deployment); err != nil {
			return err
		}
	}
	term.Section(app.Out, "Allocations")
	return view.Allocations(app, &f.Output, v.Allocations)
}

// showSummary prints one row for each group, with the number of its allocations in each state; nothing if there is
// none.
func showSummary(app *term.App, v *status) error {
	if v.Summary == nil || len(v.Summary.Summary) == 0 {
		return nil
	}
	term.Section(app.Out, "Summary")
	var rows [][]string
	for _, g := range slices.Sorted(maps.Keys(v.Summary.Summary)) {
		s := v.Summary.Summary[g]
		row := []string{g}
		for _, n := range []int{s.Queued, s.Starting, s.Running, s.Failed, s.Complete, s.Lost, s.Unknown} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	return term.Table(app.Out, "", "Group|Queued|Starting|Running|Failed|Complete|Lost|Unknown", rows)
}

// showEvaluations prints a row for each evaluation.
func showEvaluations(app *term.App, o *term.Output, list []*drover.Evaluation) error {
	term.Section(app.Out, "Evaluations")
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{
			o.ID(e.ID), strconv.Itoa(e.Priority), e.TriggeredBy, e.Status, term.YesNo(len(e.FailedTGAllocs) > 0), term.Ago(e.CreateTime),
		})
	}
	return term.Table(app.Out, "There are none.", "ID|Priority|Triggered by|Status|Unplaced|Created", rows)
}

// showUnplaced explains what the newest evaluation could not place. evals is sorted, newest first. A complete one
// without failures ends the search, since what failed before it was placed meanwhile.
func showUnplaced(app *term.App, evals []*drover.Evaluation) {
	for _, e := range evals {
		if len(e.FailedTGAllocs) > 0 {
			term.Section(app.Out, "Not placed")
			view.ExplainUnplaced(app.Out, "", e.FailedTGAllocs)
			return
		}
		if e.Status == drover.EvalComplete {
			return
		}
	}
}

// showLaunches lists the children of a periodic or parameterized job. A child's id begins with its parent's and a
// slash.
func showLaunches(ctx context.Context, app *term.App, c *api.Client, j *drover.Job) error {
	var list []*drover.JobListStub
	q := url.Values{"prefix": {j.ID + "/"}, "namespace": {j.Namespace}}
	if _, err := c.Get(ctx, "/v1/jobs", q, &list); err != nil {
		return err
	}
	term.Section(app.Out, "Launches")
	var rows [][]string
	for _, child := range list {
		// Any job may have a slash in its id, so the prefix alone does not make a child.
		if child.ParentID == j.ID {
			rows = append(rows, []string{child.ID, child.Status, term.Ago(child.SubmitTime)})
		}
	}
	return term.Table(app.Out, "There are none yet.", "ID|Status|Submitted", rows)
}
