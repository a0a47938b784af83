package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/policy"
)

// jobFile is what the form of a job file holds.
type jobFile struct {
	source, variables string
	made              bool // the source was made of the job: nobody wrote it
	older             bool // the job was scaled, stopped or rolled back since the source was given
}

// digest tells two files apart, so that what is submitted is what was planned.
func (p jobFile) digest() string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(p.source)) + ":" + p.source + p.variables))
	return hex.EncodeToString(sum[:])
}

// format is that of the source: what begins as an object is JSON.
func (p jobFile) format() string {
	if strings.HasPrefix(strings.TrimSpace(p.source), "{") {
		return "json"
	}
	return "hcl2"
}

// planned is what came of a plan.
type planned struct {
	preview   drover.Preview
	digest    string
	namespace string
}

// runPage has an editor for a job file: that of the job in the address, else an example.
func (f *Face) runPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if q.Get("job") == "" {
		return f.runForm(w, r, http.StatusOK, jobFile{source: parts.FirstJob}, nil, nil)
	}
	key := drover.NamespacedID{Namespace: q.Get("namespace"), ID: q.Get("job")}
	if key.Namespace == "" {
		key.Namespace = drover.DefaultNamespace
	}
	p, err := f.definition(r, key)
	if err != nil {
		return f.show(w, r, jobText.RunJob, html.Part{}, err)
	}
	return f.runForm(w, r, http.StatusOK, p, nil, nil)
}

// runSubmit plans the job of the form, or submits it if this very file was planned. What was typed stays.
func (f *Face) runSubmit(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", text.BadForm, err)
	}
	p := jobFile{source: lines(r.PostForm.Get("source")), variables: lines(r.PostForm.Get("variables"))}
	job, err := f.parseJob(r, p)
	if err != nil {
		return f.runForm(w, r, httpapi.Status(err), p, nil, err)
	}
	if r.PostForm.Get("run") != "" && r.PostForm.Get("digest") == p.digest() {
		if err = f.submitJob(r, p, job); err != nil {
			return f.runForm(w, r, httpapi.Status(err), p, nil, err)
		}
		http.Redirect(w, r, jobPath(job.id, job.namespace).String(), http.StatusSeeOther)
		return nil
	}
	plan := &planned{digest: p.digest(), namespace: job.namespace}
	body := map[string]any{"Job": job.fields, "Diff": true}
	err = f.ask(r.Context(), r, http.MethodPost, inNamespace(apiPath("job", job.id, "plan"), job.namespace), body, &plan.preview)
	if err != nil {
		return f.runForm(w, r, httpapi.Status(err), p, nil, err)
	}
	return f.runForm(w, r, http.StatusOK, p, plan, nil)
}

// parsedJob is a job as the API takes it. Its fields are not read further: none is lost.
type parsedJob struct {
	id, namespace string
	fields        map[string]json.RawMessage
}

// parseJob reads HCL by the API, and JSON as it stands: the job itself, or an object whose Job it is. Errors: Invalid with line and column.
func (f *Face) parseJob(r *http.Request, p jobFile) (parsedJob, error) {
	var job parsedJob
	if p.format() == "json" {
		if err := json.Unmarshal([]byte(p.source), &job.fields); err != nil {
			return job, drover.Errorf(drover.Invalid, "%s%w", place(p.source, err), err)
		}
		if inner, wrapped := job.fields["Job"]; wrapped {
			job.fields = nil
			if err := json.Unmarshal(inner, &job.fields); err != nil {
				return job, drover.Errorf(drover.Invalid, "Job: %w", err)
			}
		}
	} else {
		body := map[string]any{"JobHCL": p.source, "Variables": p.variables, "Canonicalize": true}
		if err := f.ask(r.Context(), r, http.MethodPost, "/v1/jobs/parse", body, &job.fields); err != nil {
			return job, err
		}
	}
	for name, to := range map[string]*string{"ID": &job.id, "Namespace": &job.namespace} {
		if raw, given := job.fields[name]; given {
			if err := json.Unmarshal(raw, to); err != nil {
				return job, drover.Errorf(drover.Invalid, "Job.%s: %w", name, err)
			}
		}
	}
	if job.id == "" {
		return job, drover.Errorf(drover.Invalid, "Job.ID: it is empty; give the job an id")
	}
	if job.namespace == "" {
		job.namespace = drover.DefaultNamespace
	}
	return job, nil
}

// place says where in the text JSON ceases to be JSON, as "line 3, column 7: "; nothing of other errors.
func place(source string, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return ""
	}
	before := source[:max(0, min(int(syntax.Offset)-1, len(source)))]
	line := strings.Count(before, "\n") + 1
	return fmt.Sprintf("line %d, column %d: ", line, len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))+1)
}

// submitJob registers the job unless the one that the plan was made for has changed since.
func (f *Face) submitJob(r *http.Request, p jobFile, job parsedJob) error {
	index, err := strconv.ParseUint(r.PostForm.Get("index"), 10, 64)
	if err != nil {
		return drover.Errorf(drover.Invalid, "index: %q is not a whole number; plan the job again", r.PostForm.Get("index"))
	}
	body := map[string]any{
		"Job": job.fields, "EnforceIndex": true, "JobModifyIndex": index,
		"Submission": map[string]string{"Source": p.source, "Format": p.format(), "Variables": p.variables},
	}
	return f.ask(r.Context(), r, http.MethodPost, inNamespace("/v1/jobs", job.namespace), body, nil)
}

func (f *Face) runForm(w http.ResponseWriter, r *http.Request, code int, p jobFile, plan *planned, err error) error {
	problem, result, submit, rows := html.Part{}, html.Part{}, html.Part{}, "24"
	if err != nil {
		problem = failed(r, err)
	}
	if plan != nil {
		result, rows = planResult(plan), "12" // it is what one wants to see now
		submit = html.Group(hidden("digest", plan.digest), hidden("index", strconv.FormatUint(plan.preview.JobModifyIndex, 10)),
			html.If(f.may(r, plan.namespace, policy.RegisterJob), button("primary", "run", jobText.Submit)))
	}
	body := html.Group(html.El("h1", html.Text(jobText.RunJob)), problem,
		html.El("form", html.Class("inputs"), html.Attr("method", "post"), html.Action(html.Path("ui", "jobs", "run")),
			html.El("div", html.El("label", html.Attr("for", "source"), html.Text(jobText.Job), hint(jobText.JobMore)),
				area("source", "source", rows, p.source)),
			html.El("div", html.El("label", html.Attr("for", "variables"), html.Text(jobText.Variables), hint(jobText.VariablesMore)),
				area("variables", "variables", "3", p.variables)),
			html.El("div", html.Class("row"), html.If(f.may(r, anywhere, plansJobs...), button("", "plan", jobText.Plan)), submit)),
		result)
	return f.write(w, r, code, view{title: jobText.RunJob, body: body, module: "run.js"})
}

// plannedPlaces says which nodes would get what; nothing if none would get anything.
func plannedPlaces(all []drover.PlannedPlacement) html.Part {
	if len(all) == 0 {
		return html.Part{}
	}
	rows := make([]html.Part, 0, perPage)
	for _, p := range all[:min(len(all), perPage)] {
		rows = append(rows, row(html.Name(p.Group), link(html.Path("ui", "clients", p.NodeID), p.NodeName), html.Int(p.Count)))
	}
	left := html.If(len(all) > perPage, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(jobText.MoreNodes, len(all)-perPage))))
	return html.Group(html.El("h3", html.Text(jobText.Places)), table(jobText.Places, jobText.PlaceColumns, rows, ""), left)
}

// launchAt says when a periodic job is due; nothing for others.
func launchAt(at time.Time) html.Part {
	return html.If(!at.IsZero(), html.El("p", html.Text(jobText.NextLaunch+" "), instant(at)))
}

// planResult says what would happen: what is placed, stopped and replaced, what has no place, what differs, and what the server warns of.
func planResult(p *planned) html.Part {
	var rows []html.Part
	if a := p.preview.Annotations; a != nil {
		for _, group := range slices.Sorted(maps.Keys(a.DesiredTGUpdates)) {
			cells := []html.Part{html.Name(group)}
			u := a.DesiredTGUpdates[group]
			for _, n := range []uint64{u.Place, u.Stop, u.InPlaceUpdate, u.DestructiveUpdate, u.Canary, u.Migrate, u.Ignore} {
				cells = append(cells, html.Text(strconv.FormatUint(n, 10)))
			}
			rows = append(rows, row(cells...))
		}
	}
	warnings := html.El("p", html.Class("muted"), html.Text(jobText.NoWarnings))
	if p.preview.Warnings != "" {
		warnings = notice("warn", jobText.Warnings, p.preview.Warnings)
	}
	return html.El("section", html.ID("planned"), html.El("h2", html.Text(jobText.Planned)), warnings,
		unplaced(jobText.WouldPlace, p.preview.FailedTGAllocs),
		table(jobText.Planned, jobText.PlanColumns, rows, jobText.Nothing),
		plannedPlaces(p.preview.Placements), launchAt(p.preview.NextPeriodicLaunch),
		diffTable(jobText.Changed, p.preview.Diff, jobText.Nothing))
}
