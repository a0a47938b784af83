package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/nodeview"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/usage"
)

func (f *Face) job(w http.ResponseWriter, r *http.Request) error {
	return f.jobPage(w, r, http.StatusOK, nil)
}

// jobPage shows a job; with what an action on it failed for, the page has that, and the fields hold what was typed.
func (f *Face) jobPage(w http.ResponseWriter, r *http.Request, code int, failure error) error {
	key := jobKey(r)
	var job drover.Job
	var summary drover.JobSummary
	var deployment *drover.Deployment
	var evaluations []drover.Evaluation
	var err error
	for _, part := range []struct {
		path string
		out  any
	}{{"", &job}, {"summary", &summary}, {"deployment", &deployment}, {"evaluations", &evaluations}} {
		if err == nil {
			err = f.readJob(r, key, part.path, part.out)
		}
	}
	newest, err := f.newestAllocations(r, key, err)
	if err != nil {
		return f.show(w, r, key.ID, html.Part{}, err)
	}
	problem := html.Part{}
	if failure != nil {
		problem = failed(r, failure)
	}
	body := html.Group(html.El("h1", html.Name(key.ID)), jobTabs(r, key), problem, parts.About(job.UI),
		facts(factOf(text.Status, status(job.Status)), factOf(text.Namespace, html.Name(key.Namespace)), factOf(text.Type, html.Text(job.Type)),
			factOf(text.Version, html.Text(strconv.FormatUint(job.Version, 10))), factOf(jobText.Submitted, moment(job.SubmitTime)),
			factOf(text.Priority, html.Int(job.Priority))),
		f.jobButtons(r, key, &job), notPlaced(evaluations), f.deploymentPanel(r, key, deployment), f.groupTable(r, key, &job, &summary),
		f.dispatchForm(r, key, &job), f.launches(r, key, &job))
	return f.write(w, r, code, view{title: key.ID, body: html.Group(done(r, jobText.Actions), livePart("job", jobTopics, 0, body), newest)})
}

// newestAllocations is the part of a job's page with its newest allocations, and what they use. Errors: the one that is given; the API's.
func (f *Face) newestAllocations(r *http.Request, key drover.NamespacedID, err error) (html.Part, error) {
	if err != nil {
		return html.Part{}, err
	}
	var all []drover.AllocationListStub
	path := inNamespace(apiPath("job", key.ID, "allocations"), key.Namespace, "per_page", strconv.Itoa(perPage), "sort", "-created")
	header, err := f.read(r, path, &all)
	if err != nil {
		return html.Part{}, err
	}
	var now usage.Samples
	if path := parts.UsagePath(all); path != "" {
		_ = f.ask(r.Context(), r, http.MethodGet, path, nil, &now) // it is not known then
	}
	total, _ := strconv.Atoi(header.Get("Drover-Total"))
	return livePart("allocations", jobTopics, 5, html.El("h2", html.Text(text.Allocations)), f.whereLink(r, key),
		parts.Allocations(parts.OfJob, all, now), html.If(total > len(all), html.El("p", html.El("a",
			html.Href(html.Path("ui", "allocations").With("q", key.ID)), html.Text(fmt.Sprintf(jobText.AllOf, total)))))), nil
}

// whereLink leads to the map of nodes with the marks of the job; nothing for who may not see nodes.
func (f *Face) whereLink(r *http.Request, key drover.NamespacedID) html.Part {
	if may := f.rights(r, key.Namespace); may != nil && !ofNodes(may) {
		return html.Part{}
	}
	return html.El("p", html.El("a", html.Href(nodeview.JobPath(key.ID, key.Namespace)), html.Text(jobText.Where)))
}

// readJob reads what the API has of a job under a path, "" for the job itself.
func (f *Face) readJob(r *http.Request, key drover.NamespacedID, path string, out any) error {
	parts := []string{"job", key.ID}
	if path != "" {
		parts = append(parts, path)
	}
	return f.ask(r.Context(), r, http.MethodGet, inNamespace(apiPath(parts...), key.Namespace), nil, out)
}

// jobTabs leads to the parts of a job.
func jobTabs(r *http.Request, key drover.NamespacedID) html.Part {
	at := key.ID + "@" + key.Namespace
	return tabs(r, jobText.Parts, []tab{
		{jobText.Overview, html.Path("ui", "jobs", at)},
		{jobText.Versions, html.Path("ui", "jobs", at, "versions")},
		{jobText.Evaluations, html.Path("ui", "jobs", at, "evaluations")},
		{jobText.Deployments, html.Path("ui", "jobs", at, "deployments")},
		{jobText.Definition, html.Path("ui", "jobs", at, "definition")},
	})
}

// act is a form that asks for an action on a job; nothing where the viewer may not.
func (f *Face) act(r *http.Request, key drover.NamespacedID, name string, fields ...html.Part) html.Part {
	if !f.may(r, key.Namespace, jobNeeds[name]...) {
		return html.Part{}
	}
	return html.El("form", html.Attr("method", "post"), html.Action(html.Path("ui", "jobs", key.ID+"@"+key.Namespace, name)),
		html.Group(fields...), html.El("button", html.Class(jobText.Actions[name].look(name)), html.Text(jobText.Actions[name].button)))
}

func (f *Face) jobButtons(r *http.Request, key drover.NamespacedID, job *drover.Job) html.Part {
	return html.El("div", html.Class("row actions"),
		html.If(!job.Stop, f.act(r, key, "stop")), html.If(job.Stop, f.act(r, key, "start")), f.act(r, key, "purge"),
		html.If(!job.Periodical() && !job.Parameterized() && !job.Stop, f.act(r, key, "evaluate")),
		html.If(job.Periodical() && !job.Stop, f.act(r, key, "force")))
}

// notPlaced says of the newest evaluation's groups what the scheduler found no room for, and why.
func notPlaced(evaluations []drover.Evaluation) html.Part {
	if len(evaluations) == 0 {
		return html.Part{}
	}
	newest := slices.MaxFunc(evaluations, func(a, b drover.Evaluation) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ModifyIndex, b.ModifyIndex))
	})
	if newest.Status == drover.EvalBlocked { // it holds what the one that it waits for found
		for _, e := range evaluations {
			if e.BlockedEval == newest.ID && len(newest.FailedTGAllocs) == 0 {
				newest.FailedTGAllocs = e.FailedTGAllocs
			}
		}
	}
	return unplaced(work.NotPlaced, newest.FailedTGAllocs)
}

// groupTable has each group's state, and a field for its count where the job has one that may change.
func (f *Face) groupTable(r *http.Request, key drover.NamespacedID, job *drover.Job, summary *drover.JobSummary) html.Part {
	rows, scales := make([]html.Part, 0, len(job.TaskGroups)), f.may(r, key.Namespace, jobNeeds["scale"]...)
	for i, g := range job.TaskGroups {
		one := drover.JobSummary{Summary: map[string]drover.TaskGroupSummary{g.Name: summary.Summary[g.Name]}}
		tasks := make([]string, 0, len(g.Tasks))
		for _, t := range g.Tasks {
			tasks = append(tasks, t.Name+" ("+t.Driver+")")
		}
		count := strconv.Itoa(optional.Value(g.Count))
		wanted := html.Text(count)
		if scales && !job.Stop && (job.Type == drover.JobTypeService || job.Type == drover.JobTypeBatch) {
			if r.PostForm.Get("group") == g.Name {
				count = r.PostForm.Get("count")
			}
			field := "count" + strconv.Itoa(i)
			wanted = f.act(r, key, "scale", hidden("group", g.Name),
				html.El("label", html.Class("away"), html.Attr("for", field), html.Text(fmt.Sprintf(jobText.Count, g.Name))),
				html.El("input", html.ID(field), html.Class("count"), html.Attr("name", "count"), html.Attr("value", count),
					html.Attr("inputmode", "numeric"), html.Attr("autocomplete", "off")), html.Text(" "))
		}
		rows = append(rows, row(html.Name(g.Name), wanted, html.Text(counts(&one)), html.Name(strings.Join(tasks, ", "))))
	}
	return html.Group(html.El("h2", html.Text(text.Groups)), table(text.Groups, text.GroupColumns, rows, text.Nothing))
}

// dispatchForm asks for the payload and meta of a parameterized job.
func (f *Face) dispatchForm(r *http.Request, key drover.NamespacedID, job *drover.Job) html.Part {
	if !job.Parameterized() || job.Stop || !f.may(r, key.Namespace, jobNeeds["dispatch"]...) {
		return html.Part{}
	}
	meta := r.PostForm.Get("meta")
	if !r.PostForm.Has("meta") {
		for _, name := range job.ParameterizedJob.MetaRequired {
			meta += name + "=\n"
		}
	}
	fields := []html.Part{
		html.El("label", html.Attr("for", "meta"), html.Text(jobText.Meta), hint(jobText.MetaMore)), area("meta", "meta", "3", meta),
	}
	if job.ParameterizedJob.Payload != "forbidden" {
		fields = append(fields, html.El("label", html.Attr("for", "payload"), html.Text(jobText.Payload), hint(jobText.PayloadMore)),
			area("payload", "payload", "4", r.PostForm.Get("payload")))
	}
	return html.El("div", html.Class("panel"), html.El("h2", html.Text(jobText.Dispatch)), f.act(r, key, "dispatch", fields...))
}

// deploymentPanel shows the groups of a deployment that is under way, and what can be done with it.
func (f *Face) deploymentPanel(r *http.Request, key drover.NamespacedID, d *drover.Deployment) html.Part {
	if !d.Active() {
		return html.Part{}
	}
	groups, unpromoted := parts.DeploymentGroups(jobText.Deployments, text.Nothing, d)
	of := hidden("deployment", d.ID)
	return html.Group(html.El("h2", html.Text(jobText.Deployment+" "), link(html.Path("ui", "deployments", d.ID), shortID(d.ID)),
		html.Text(" "), status(d.Status)),
		html.El("p", html.Name(d.StatusDescription)),
		groups,
		html.El("div", html.Class("row actions"), html.If(unpromoted, f.act(r, key, "promote", of)),
			html.If(d.Status == drover.DeploymentRunning, f.act(r, key, "pause", of)),
			html.If(d.Status == drover.DeploymentPaused, f.act(r, key, "resume", of)), f.act(r, key, "fail", of)))
}

func shortID(id string) string { return id[:min(8, len(id))] }

// jobPart shows a part of a job below its tabs.
func (f *Face) jobPart(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error {
	key, code := jobKey(r), http.StatusOK
	if err != nil {
		code, body = httpapi.Status(err), failed(r, err)
	}
	return f.write(w, r, code, view{
		title: key.ID + " · " + title,
		body:  html.Group(html.El("h1", html.Name(key.ID)), jobTabs(r, key), body),
	})
}
