package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) jobStatusCommand() *cobra.Command {
	o := &output{}
	c := leaf("status [JOB]", "List jobs, or show one with its allocations", 0, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return a.jobList(ctx, c, o)
		}
		return a.jobStatus(ctx, c, o, args[0])
	})
	with(c, "Lists the jobs of the namespace (-namespace '*': of all), or shows one: its counts, why something of it is not\nplaced, its deployment and its allocations.",
		"drover job status\ndrover job status -namespace '*'\ndrover job status web\ndrover job status -t '{{.Job.Status}}' web")
	o.bind(c.Flags())
	return c
}

func (a *App) jobList(ctx context.Context, c *api, o *output) error {
	var list []*drover.JobListStub
	if _, err := c.get(ctx, "/v1/jobs", nil, &list); err != nil {
		return err
	}
	if done, err := o.data(a.Out, list); done {
		return err
	}
	all, heading := c.namespace == "*", "ID|Type|Priority|Status|Submitted"
	if all {
		heading = "ID|Namespace|Type|Priority|Status|Submitted"
	}
	var rows [][]string
	for _, j := range list {
		row := []string{j.ID}
		if all {
			row = append(row, j.Namespace)
		}
		rows = append(rows, append(row, jobKind(j.Type, j.Periodic, j.ParameterizedJob), strconv.Itoa(j.Priority), jobState(j.Status, j.Stop), ago(j.SubmitTime)))
	}
	return table(a.Out, "There are no jobs.", heading, rows)
}

func jobKind(kind string, periodic, parameterized bool) string {
	if periodic {
		kind += "/periodic"
	}
	if parameterized {
		kind += "/parameterized"
	}
	return kind
}

func jobState(status string, stopped bool) string {
	if stopped {
		return status + " (stopped)"
	}
	return status
}

// jobView is what a job's status shows, and prints as JSON.
type jobView struct {
	Job         *drover.Job
	Summary     *drover.JobSummary
	Evaluations []*drover.Evaluation
	Deployment  *drover.Deployment
	Allocations []*drover.AllocationListStub
}

func (c *api) jobView(ctx context.Context, prefix string) (*jobView, error) {
	j, err := c.job(ctx, prefix)
	if err != nil {
		return nil, err
	}
	v := &jobView{Job: j}
	for suffix, out := range map[string]any{
		"/summary": &v.Summary, "/evaluations": &v.Evaluations, "/deployment": &v.Deployment, "/allocations": &v.Allocations,
	} {
		if _, err := c.get(ctx, jobPath(j.ID, suffix), inNamespace(j.Namespace), out); err != nil {
			return nil, fmt.Errorf("reading the job's %s: %w", strings.TrimPrefix(suffix, "/"), err)
		}
	}
	slices.SortFunc(v.Evaluations, func(x, y *drover.Evaluation) int { return int(y.CreateIndex) - int(x.CreateIndex) })
	newestFirst(v.Allocations)
	return v, nil
}

func newestFirst(list []*drover.AllocationListStub) {
	slices.SortStableFunc(list, func(x, y *drover.AllocationListStub) int {
		if x.CreateIndex != y.CreateIndex {
			return int(y.CreateIndex) - int(x.CreateIndex)
		}
		return compareNames(x.Name, y.Name)
	})
}

func (a *App) jobStatus(ctx context.Context, c *api, o *output, prefix string) error {
	v, err := c.jobView(ctx, prefix)
	if err != nil {
		return err
	}
	if done, err := o.data(a.Out, v); done {
		return err
	}
	j := v.Job
	if err := facts(a.Out, "ID", j.ID, "Name", j.Name, "Submitted", nanos(j.SubmitTime),
		"Type", jobKind(j.Type, j.Periodic != nil, j.ParameterizedJob != nil), "Priority", strconv.Itoa(j.Priority),
		"Datacenters", strings.Join(j.Datacenters, ", "), "Namespace", j.Namespace, "Node pool", j.NodePool,
		"Status", jobState(j.Status, j.Stop), "Version", strconv.FormatUint(j.Version, 10), "Parent", j.ParentID); err != nil {
		return err
	}
	if err := a.jobSummary(v); err != nil {
		return err
	}
	if len(v.Evaluations) > 0 {
		a.jobUnplaced(v.Evaluations)
	}
	if j.Periodic != nil || j.Parameterized() {
		return a.jobChildren(ctx, c, j)
	}
	if v.Deployment != nil {
		section(a.Out, "Latest deployment")
		if err := a.deploymentFacts(o, v.Deployment); err != nil {
			return err
		}
	}
	section(a.Out, "Allocations")
	return a.allocTable(o, v.Allocations)
}

func (a *App) jobSummary(v *jobView) error {
	if v.Summary == nil || len(v.Summary.Summary) == 0 {
		return nil
	}
	section(a.Out, "Summary")
	var rows [][]string
	for _, g := range slices.Sorted(maps.Keys(v.Summary.Summary)) {
		s := v.Summary.Summary[g]
		row := []string{g}
		for _, n := range []int{s.Queued, s.Starting, s.Running, s.Failed, s.Complete, s.Lost, s.Unknown} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	return table(a.Out, "", "Group|Queued|Starting|Running|Failed|Complete|Lost|Unknown", rows)
}

// jobUnplaced explains what the newest evaluation could not place.
func (a *App) jobUnplaced(evals []*drover.Evaluation) {
	for _, e := range evals {
		if len(e.FailedTGAllocs) > 0 {
			section(a.Out, "Not placed")
			explain(a.Out, "", e.FailedTGAllocs)
			return
		}
		if e.Status == drover.EvalComplete {
			return
		}
	}
}

func (a *App) jobChildren(ctx context.Context, c *api, j *drover.Job) error {
	var list []*drover.JobListStub
	q := url.Values{"prefix": {j.ID + "/"}, "namespace": {j.Namespace}}
	if _, err := c.get(ctx, "/v1/jobs", q, &list); err != nil {
		return err
	}
	section(a.Out, "Launches")
	var rows [][]string
	for _, child := range list {
		if child.ParentID == j.ID {
			rows = append(rows, []string{child.ID, child.Status, ago(child.SubmitTime)})
		}
	}
	return table(a.Out, "There are none yet.", "ID|Status|Submitted", rows)
}

// allocTable lists allocations.
func (a *App) allocTable(o *output, list []*drover.AllocationListStub) error {
	var rows [][]string
	for _, v := range list {
		rows = append(rows, []string{
			o.id(v.ID), v.Name, v.NodeName, strconv.FormatUint(v.JobVersion, 10), v.DesiredStatus, v.ClientStatus, ago(v.CreateTime), ago(v.ModifyTime),
		})
	}
	return table(a.Out, "There are none.", "ID|Name|Node|Version|Desired|Status|Created|Modified", rows)
}
