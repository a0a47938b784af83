package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/jobdiff"
)

// jobVersions shows the versions, the newest first, each with its difference to the one before.
func (f *Face) jobVersions(w http.ResponseWriter, r *http.Request) error {
	key := jobKey(r)
	var kept struct {
		Versions []drover.Job
		Diffs    []*jobdiff.Job
	}
	err := f.ask(r.Context(), r, http.MethodGet, inNamespace(apiPath("job", key.ID, "versions"), key.Namespace, "diffs", "true"), nil, &kept)
	parts := make([]html.Part, 0, len(kept.Versions))
	for i, v := range kept.Versions {
		version := strconv.FormatUint(v.Version, 10)
		parts = append(parts, html.El("section",
			html.El("h2", html.Text(text.Version+" "+version+" · "), moment(v.SubmitTime), html.If(v.Stable, html.Text(" · "+jobText.Stable))),
			html.If(i > 0, f.act(r, key, "revert", hidden("version", version))),
			versionDiff(kept.Versions, kept.Diffs, i)))
	}
	return f.jobPart(w, r, jobText.Versions, html.Group(parts...), err)
}

func versionDiff(versions []drover.Job, diffs []*jobdiff.Job, i int) html.Part {
	if i >= len(diffs) || i+1 >= len(versions) {
		return html.El("p", html.Class("muted"), html.Text(jobText.FirstVersion))
	}
	return diffTable(fmt.Sprintf(jobText.Difference, versions[i+1].Version), diffs[i], jobText.Same)
}

// diffTable has a row for each value that differs.
func diffTable(caption string, d *jobdiff.Job, same string) html.Part {
	var rows []html.Part
	if d != nil {
		rows = diffRows(nil, "", d.Fields, d.Objects)
		for _, g := range d.TaskGroups {
			at := "group " + g.Name
			rows = wholeRow(rows, at, g.Type)
			rows = diffRows(rows, at+" › ", g.Fields, g.Objects)
			for _, t := range g.Tasks {
				in := at + " › task " + t.Name
				rows = wholeRow(rows, in, t.Type)
				rows = diffRows(rows, in+" › ", t.Fields, t.Objects)
			}
		}
	}
	return html.Group(html.El("p", html.Class("muted"), html.Text(caption)), table(caption, jobText.DiffColumns, rows, same))
}

// wholeRow is one for a group or task that came or went as a whole.
func wholeRow(rows []html.Part, at, kind string) []html.Part {
	if kind == jobdiff.Added || kind == jobdiff.Deleted {
		rows = append(rows, row(html.Name(at), html.Text(kind), html.Part{}))
	}
	return rows
}

func diffRows(rows []html.Part, at string, fields []*jobdiff.Field, objects []*jobdiff.Object) []html.Part {
	for _, d := range fields {
		if d.Type != jobdiff.None {
			rows = append(rows, row(html.Name(at+d.Name), html.Name(d.Old), html.Name(d.New)))
		}
	}
	for _, o := range objects {
		rows = diffRows(rows, at+o.Name+" › ", o.Fields, o.Objects)
	}
	return rows
}

// jobEvaluations shows the newest evaluations, each with what it found no place for.
func (f *Face) jobEvaluations(w http.ResponseWriter, r *http.Request) error {
	var all []drover.Evaluation
	err := f.readJob(r, jobKey(r), "evaluations", &all)
	slices.SortFunc(all, func(a, b drover.Evaluation) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	rows := make([]html.Part, 0, perPage)
	for _, e := range all[:min(len(all), perPage)] {
		why := html.Group(html.Name(e.StatusDescription), unplaced(work.NotPlaced, e.FailedTGAllocs))
		rows = append(rows, row(link(html.Path("ui", "evaluations", e.ID), shortID(e.ID)), moment(e.CreateTime), html.Text(e.TriggeredBy),
			status(e.Status), why))
	}
	return f.jobPart(w, r, jobText.Evaluations, html.Group(table(jobText.Evaluations, jobText.EvaluationColumns, rows, text.Nothing),
		newestOf(len(all))), err)
}

// jobDeployments shows the newest deployments.
func (f *Face) jobDeployments(w http.ResponseWriter, r *http.Request) error {
	var all []drover.Deployment
	err := f.readJob(r, jobKey(r), "deployments", &all)
	slices.SortFunc(all, func(a, b drover.Deployment) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	rows := make([]html.Part, 0, perPage)
	for _, d := range all[:min(len(all), perPage)] {
		rows = append(rows, row(link(html.Path("ui", "deployments", d.ID), shortID(d.ID)), html.Text(strconv.FormatUint(d.JobVersion, 10)),
			status(d.Status), moment(d.CreateTime), html.Name(d.StatusDescription)))
	}
	return f.jobPart(w, r, jobText.Deployments, html.Group(table(jobText.Deployments, jobText.DeploymentColumns, rows, text.Nothing),
		newestOf(len(all))), err)
}

// newestOf says that a list is longer than what is shown of it.
func newestOf(n int) html.Part {
	return html.If(n > perPage, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(text.NewestOf, perPage, n))))
}

// jobDefinition shows the text that the running version was made of, or the job as the API has it where the text is not kept.
func (f *Face) jobDefinition(w http.ResponseWriter, r *http.Request) error {
	p, err := f.definition(r, jobKey(r))
	if err != nil {
		return f.jobPart(w, r, jobText.Definition, html.Part{}, err)
	}
	key := jobKey(r)
	change := html.Path("ui", "jobs", "run").With("job", key.ID).With("namespace", key.Namespace)
	return f.jobPart(w, r, jobText.Definition, html.Group(
		html.If(p.made, html.El("p", html.Class("muted"), html.Text(jobText.SourceGone))),
		html.If(p.older, html.El("p", html.Class("muted"), html.Text(jobText.SourceOlder))),
		html.If(f.may(r, key.Namespace, plansJobs...), html.El("p", html.El("a", html.Href(change), html.Text(jobText.Next)))),
		html.El("pre", html.Class("whole"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-label", jobText.Source),
			html.Text(p.source)),
		html.If(p.variables != "", html.Group(html.El("h2", html.Text(jobText.Variables)), html.El("pre", html.Text(p.variables)))),
	), nil)
}

// definition reads the newest text of a job; made says that there is none, and it was made of the job itself.
func (f *Face) definition(r *http.Request, key drover.NamespacedID) (jobFile, error) {
	var fields map[string]json.RawMessage
	if err := f.readJob(r, key, "", &fields); err != nil {
		return jobFile{}, err
	}
	s, err := f.source(r, key, string(fields["Version"]))
	switch {
	case err == nil && s.Source != "":
		var now uint64 // a version that was not registered with the text has an index beyond the text's
		older := json.Unmarshal(fields["JobModifyIndex"], &now) == nil && s.JobModifyIndex < now
		return jobFile{source: s.Source, variables: s.Variables, older: older}, nil
	case err != nil && httpapi.Status(err) != http.StatusNotFound:
		return jobFile{}, err
	}
	content, err := json.Marshal(fields)
	if err != nil {
		return jobFile{}, err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, content, "", "  ")
	return jobFile{source: indented.String(), made: true}, err
}
