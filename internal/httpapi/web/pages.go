package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/herd"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// show answers with a page whose body comes of the API, or with what the API said instead.
func (f *Face) show(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error {
	status, head := http.StatusOK, html.El("h1", html.Name(title))
	if err != nil {
		if status, body = httpapi.Status(err), failed(r, err); status >= http.StatusInternalServerError {
			body = livePart("failed", nil, 2, body) // it may mend by itself
		}
	}
	return f.write(w, r, status, view{title: title, body: html.Group(head, body)})
}

func everywhere() url.Values { return url.Values{"namespace": {"*"}} }

// jobPath is a job's page, by Nomad's path: ID@NAMESPACE.
func jobPath(id, namespace string) html.URL { return html.Path("ui", "jobs", id+"@"+namespace) }

func (f *Face) jobs(w http.ResponseWriter, r *http.Request) error {
	jobs, page, err := list[drover.JobListStub](f, r, "/v1/jobs", everywhere())
	rows := make([]html.Part, 0, len(jobs))
	for _, j := range jobs {
		rows = append(rows, row(link(jobPath(j.ID, j.Namespace), j.ID), html.Name(j.Namespace), html.Text(j.Type), status(j.Status),
			html.Int(j.Priority), html.Text(counts(j.JobSummary))))
	}
	run := html.El("p", html.El("a", html.Href(html.Path("ui", "jobs", "run")), html.Text(jobText.RunJob)))
	body := html.Group(run, search(r),
		table(text.Jobs, text.JobColumns, rows, text.NoJobs), pager(r, html.Path("ui", "jobs"), page))
	live := livePart("jobs", []string{drover.TopicJob, drover.TopicAllocation}, 0, body)
	return f.show(w, r, text.Jobs, html.Group(done(r, jobText.Actions), live), err)
}

// counts says how many allocations are in which state.
func counts(s *drover.JobSummary) string {
	if s == nil {
		return "–"
	}
	var all drover.TaskGroupSummary
	for _, g := range s.Summary {
		all.Running += g.Running
		all.Starting += g.Starting
		all.Queued += g.Queued
		all.Failed += g.Failed
		all.Lost += g.Lost
		all.Unknown += g.Unknown
		all.Complete += g.Complete
	}
	var said []string
	for i, n := range [...]int{all.Running, all.Starting, all.Queued, all.Failed, all.Lost, all.Unknown, all.Complete} {
		if n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, text.Counts[i]))
		}
	}
	return cmp.Or(strings.Join(said, ", "), "–")
}

// allocationTable shows the newest allocations first, at most a page of them.
func allocationTable(all []drover.AllocationListStub) html.Part {
	slices.SortFunc(all, func(a, b drover.AllocationListStub) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	rows := make([]html.Part, 0, perPage)
	for _, a := range all[:min(len(all), perPage)] {
		rows = append(rows, row(link(allocPath(a.ID), shortID(a.ID)), html.Name(a.Name), status(a.ClientStatus),
			html.Text(a.DesiredStatus), link(html.Path("ui", "clients", a.NodeID), a.NodeName), moment(a.CreateTime)))
	}
	more := html.Part{}
	if len(all) > perPage {
		more = html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(text.NewestOf, perPage, len(all))))
	}
	return html.Group(table(text.Allocations, text.AllocationColumns, rows, text.Nothing), more)
}

// moment is a time in UTC, from unix ns; 0 is a dash.
func moment(ns int64) html.Part { return parts.Moment(ns) }

func (f *Face) nodes(w http.ResponseWriter, r *http.Request) error {
	nodes, page, err := list[drover.NodeListStub](f, r, "/v1/nodes", url.Values{})
	rows := make([]html.Part, 0, len(nodes))
	for _, n := range nodes {
		rows = append(rows, row(link(html.Path("ui", "clients", n.ID), n.Name), html.Text(n.ID[:min(8, len(n.ID))]), html.Name(n.NodePool),
			html.Name(n.Datacenter), nodeStatus(n.Status, n.SchedulingEligibility, n.Drain), html.Text(n.Version)))
	}
	body := html.Group(search(r), livePart("nodes", []string{drover.TopicNode}, 0, table(text.Nodes, text.NodeColumns, rows, text.NoNodes),
		pager(r, html.Path("ui", "clients"), page)))
	return f.show(w, r, text.Nodes, body, err)
}

// nodeStatus is what matters most of a node: that it drains, or takes nothing, where it is ready.
func nodeStatus(word, eligibility string, drains bool) html.Part {
	switch {
	case drains:
		word = "draining"
	case word == "ready" && eligibility != "eligible":
		word = eligibility
	}
	return status(word)
}

func (f *Face) node(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("node")
	var n drover.NodeListStub
	var allocations []drover.AllocationListStub
	err := f.ask(r.Context(), r, http.MethodGet, apiPath("node", id), nil, &n)
	if err == nil {
		err = f.ask(r.Context(), r, http.MethodGet, apiPath("node", id, "allocations"), nil, &allocations)
	}
	body := livePart("node", []string{drover.TopicNode, drover.TopicAllocation}, 0,
		facts(factOf(text.Status, nodeStatus(n.Status, n.SchedulingEligibility, n.Drain)), factOf(text.Pool, html.Name(n.NodePool)),
			factOf(text.Datacenter, html.Name(n.Datacenter)), factOf(text.ID, html.Text(n.ID))),
		html.El("h2", html.Text(text.Allocations)), allocationTable(allocations))
	return f.show(w, r, cmp.Or(n.Name, id), body, err)
}

// environmentsPath lists what the viewer may read, of all namespaces.
const environmentsPath = "/v1/environments?namespace=*"

func (f *Face) environments(w http.ResponseWriter, r *http.Request) error {
	var all []execution.Environment
	err := f.ask(r.Context(), r, http.MethodGet, environmentsPath, nil, &all)
	rows := make([]html.Part, 0, len(all))
	for _, e := range all[:min(len(all), perPage)] {
		var s execution.PoolStatus
		if err == nil {
			err = f.ask(r.Context(), r, http.MethodGet, apiPath("environment", e.Key(), "pool"), nil, &s)
		}
		rows = append(rows, row(link(html.Path("ui", "environments", e.Key()), e.Key()), html.Name(e.Image), html.Text(fmt.Sprintf("%d / %d",
			s.Warm, s.Size)), html.Int(s.Starting),
			html.Int(s.Queued), html.Int(s.Claimed), html.Int(s.Waiting), html.Name(cmp.Or(s.LastError, "–"))))
	}
	body := livePart("environments", []string{drover.TopicEnvironment, drover.TopicRunner}, 5, newestOf(len(all)),
		table(text.Environments, text.EnvironmentColumns, rows, text.NoEnvironment),
		html.El("p", html.El("a", html.Href(html.Path("ui", "runners")), html.Text(herd.RunnersName))))
	return f.show(w, r, text.Environments, body, err)
}
