package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// launches shows what a periodic or parameterized job launched, the newest first, and when a periodic one is due; nothing of other jobs.
func (f *Face) launches(r *http.Request, key drover.NamespacedID, job *drover.Job) html.Part {
	if !job.Periodical() && !job.Parameterized() {
		return html.Part{}
	}
	head := []html.Part{html.El("h2", html.Text(jobText.Children))}
	if p := job.Periodic; p != nil {
		specs := slices.DeleteFunc(append([]string{p.Spec}, p.Specs...), func(s string) bool { return s == "" })
		head = append(head, html.El("p", html.Text(jobText.Schedule+": "), html.El("code", html.Text(strings.Join(specs, ", "))),
			html.Text(" "+p.TimeZone)), f.nextLaunch(r, key, job))
	}
	var all []drover.JobListStub
	query := url.Values{"prefix": {key.ID + "/"}, "namespace": {key.Namespace}, "sort": {"-submitted"}, "per_page": {strconv.Itoa(perPage)}}
	if err := f.ask(r.Context(), r, http.MethodGet, "/v1/jobs?"+query.Encode(), nil, &all); err != nil {
		return html.Group(append(head, failed(r, err))...)
	}
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		if j := &all[i]; j.ParentID == key.ID {
			rows = append(rows, row(link(jobPath(j.ID, j.Namespace), strings.TrimPrefix(j.ID, key.ID+"/")), status(j.Status), moment(j.SubmitTime),
				html.Text(counts(j.JobSummary))))
		}
	}
	return html.Group(append(head, table(jobText.Children, jobText.ChildColumns, rows, jobText.NoChildren))...)
}

// nextLaunch says when a periodic job is due: what a plan of the job as it stands says. Who may plan none is not told.
func (f *Face) nextLaunch(r *http.Request, key drover.NamespacedID, job *drover.Job) html.Part {
	if job.Stop || !f.may(r, key.Namespace, plansJobs...) {
		return html.Part{}
	}
	var fields json.RawMessage
	var plan drover.Preview
	if f.readJob(r, key, "", &fields) != nil {
		return html.Part{}
	}
	path, body := inNamespace(apiPath("job", key.ID, "plan"), key.Namespace), map[string]any{"Job": fields}
	if f.ask(r.Context(), r, http.MethodPost, path, body, &plan) != nil {
		return html.Part{}
	}
	return launchAt(plan.NextPeriodicLaunch)
}
