package admin

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// evaluations lists them, the newest first.
func (h *Pages) evaluations(w http.ResponseWriter, r *http.Request) error {
	query := everywhere(r)
	query.Set("reverse", "true")
	for _, name := range []string{"status", "job"} {
		if v := r.URL.Query().Get(name); v != "" {
			query.Set(name, v)
		}
	}
	var all []drover.Evaluation
	next, err := h.List(r, api("evaluations"), query, &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		e := &all[i]
		rows = append(rows, parts.Row(idLink("evaluations", e.ID), parts.Status(e.Status), jobLink(e.JobID, e.Namespace), html.Name(e.Namespace),
			html.Text(e.TriggeredBy), parts.Moment(e.CreateTime), html.Name(cmp.Or(e.StatusDescription, unplacedShort(e)))))
	}
	topics := []string{drover.TopicEvaluation}
	body := html.Group(filters(r, "status", Text.Status, "job", Text.Job, "namespace", Text.Namespace),
		parts.Live("evaluations", topics, 0, parts.Table(Text.Evaluations, Text.EvaluationColumns, rows, Text.NoEvaluations),
			h.Pager(r, at(r, html.Path("ui", "evaluations"), "status", "job", "namespace"), next)))
	return h.Show(w, r, Text.Evaluations, body, err)
}

// unplacedShort says how many groups have no place.
func unplacedShort(e *drover.Evaluation) string {
	if n := len(e.FailedTGAllocs); n > 0 {
		return fmt.Sprintf(Text.GroupsUnplaced, n)
	}
	return ""
}

// evaluation explains one: what it is about, what it found no place for and why, and what came before and after it.
func (h *Pages) evaluation(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("evaluation")
	var e drover.Evaluation
	var made []drover.AllocationListStub
	err := h.Ask(r, api("evaluation", id)+"?related=true", &e)
	if err == nil {
		err = h.Ask(r, api("evaluation", e.ID, "allocations"), &made)
	}
	waits := html.Text(parts.None)
	switch {
	case !e.WaitUntil.IsZero():
		waits = parts.Instant(e.WaitUntil)
	case e.Wait > 0:
		waits = html.Text(e.Wait.Round(time.Second).String())
	}
	about := parts.Facts(parts.Fact(Text.Status, parts.Status(e.Status)), parts.Fact(Text.Job, jobLink(e.JobID, e.Namespace)),
		parts.Fact(Text.Namespace, html.Name(e.Namespace)), parts.Fact(Text.Cause, html.Text(e.TriggeredBy)),
		parts.Fact(Text.Type, html.Text(e.Type)), parts.Fact(Text.Priority, html.Int(e.Priority)),
		parts.Fact(Text.Made, parts.Moment(e.CreateTime)),
		parts.Fact(Text.Waits, waits), parts.Fact(Text.Node, idLink("clients", e.NodeID)),
		parts.Fact(Text.Deployment, idLink("deployments", e.DeploymentID)), parts.Fact(Text.Before, idLink("evaluations", e.PreviousEval)),
		parts.Fact(Text.After, idLink("evaluations", e.NextEval)), parts.Fact(Text.Blocked, idLink("evaluations", e.BlockedEval)),
		parts.Fact(Text.Description, html.Name(cmp.Or(e.StatusDescription, parts.None))), parts.Fact(Text.ID, html.Text(e.ID)))
	body := parts.Live("evaluation", []string{drover.TopicEvaluation, drover.TopicAllocation}, 0,
		html.El("p", html.Name(explain(&e))), about, parts.Unplaced(parts.WorkText.NotPlaced, e.FailedTGAllocs), queued(&e),
		html.El("h2", html.Text(Text.Placed)), placedTable(made), related(e.RelatedEvals))
	return h.Show(w, r, Text.Evaluation+" "+parts.ShortID(id), body, err)
}

// explain says in a sentence what became of an evaluation.
func explain(e *drover.Evaluation) string {
	switch {
	case e.Status == drover.EvalBlocked && e.QuotaLimitReached != "":
		return fmt.Sprintf(Text.Explained["quota"], e.QuotaLimitReached)
	case e.Status == drover.EvalComplete && len(e.FailedTGAllocs) > 0:
		return Text.Explained["partly"]
	}
	return Text.Explained[e.Status]
}

// queued is how many allocations of which group wait.
func queued(e *drover.Evaluation) html.Part {
	var rows []html.Part
	for _, group := range slices.Sorted(maps.Keys(e.QueuedAllocations)) {
		if n := e.QueuedAllocations[group]; n > 0 {
			rows = append(rows, parts.Row(html.Name(group), html.Int(n)))
		}
	}
	if len(rows) == 0 {
		return html.Part{}
	}
	return html.Group(html.El("h2", html.Text(Text.Queued)), parts.Table(Text.Queued, Text.QueuedColumns, rows, parts.None))
}

// placedTable lists the allocations that an evaluation made.
func placedTable(made []drover.AllocationListStub) html.Part {
	rows := make([]html.Part, 0, min(len(made), most))
	for _, a := range made[:min(len(made), most)] {
		rows = append(rows, parts.Row(idLink("allocations", a.ID), html.Name(a.Name), parts.Status(a.ClientStatus),
			parts.Link(html.Path("ui", "clients", a.NodeID), a.NodeName)))
	}
	return html.Group(cut(len(made)), parts.Table(Text.Placed, Text.PlacedColumns, rows, Text.NothingPlaced))
}

// related lists the evaluations that came of one, or that it came of.
func related(list []*drover.EvaluationStub) html.Part {
	rows := make([]html.Part, 0, len(list))
	for _, e := range list {
		if e != nil {
			rows = append(rows, parts.Row(idLink("evaluations", e.ID), parts.Status(e.Status), html.Text(e.TriggeredBy),
				html.Name(e.StatusDescription)))
		}
	}
	if len(rows) == 0 {
		return html.Part{}
	}
	return html.Group(html.El("h2", html.Text(Text.Related)), parts.Table(Text.Related, Text.RelatedColumns, rows, parts.None))
}

// deployments lists them, the newest first.
func (h *Pages) deployments(w http.ResponseWriter, r *http.Request) error {
	query := everywhere(r)
	query.Set("reverse", "true")
	var all []drover.Deployment
	next, err := h.List(r, api("deployments"), query, &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		d := &all[i]
		healthy, wanted := 0, 0
		for _, s := range d.TaskGroups {
			if s != nil {
				healthy, wanted = healthy+s.HealthyAllocs, wanted+s.DesiredTotal
			}
		}
		rows = append(rows, parts.Row(idLink("deployments", d.ID), parts.Status(d.Status), jobLink(d.JobID, d.Namespace), html.Name(d.Namespace),
			html.Text(fmt.Sprint(d.JobVersion)), html.Text(fmt.Sprintf("%d / %d", healthy, wanted)), parts.Moment(d.CreateTime),
			html.Name(d.StatusDescription)))
	}
	body := html.Group(filters(r, "namespace", Text.Namespace),
		parts.Live("deployments", []string{drover.TopicDeployment}, 0,
			parts.Table(Text.Deployments, Text.DeploymentColumns, rows, Text.NoDeployments),
			h.Pager(r, at(r, html.Path("ui", "deployments"), "namespace"), next)))
	return h.Show(w, r, Text.Deployments, body, err)
}

// deployment shows how far one is. What can be done with it stands on its job's page.
func (h *Pages) deployment(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("deployment")
	var d drover.Deployment
	err := h.Ask(r, api("deployment", id), &d)
	groups, unpromoted := parts.DeploymentGroups(Text.Groups, Text.NoGroups, &d)
	advice := html.Part{}
	if d.Active() {
		words := Text.Act
		if unpromoted {
			words = Text.Promote
		}
		advice = html.El("p", html.El("a", html.Href(html.Path("ui", "jobs", d.JobID+"@"+d.Namespace)), html.Text(words)))
	}
	body := parts.Live("deployment", []string{drover.TopicDeployment}, 0,
		parts.Facts(parts.Fact(Text.Status, parts.Status(d.Status)), parts.Fact(Text.Job, jobLink(d.JobID, d.Namespace)),
			parts.Fact(Text.Namespace, html.Name(d.Namespace)), parts.Fact(Text.Version, html.Text(fmt.Sprint(d.JobVersion))),
			parts.Fact(Text.Made, parts.Moment(d.CreateTime)), parts.Fact(Text.Changed, parts.Moment(d.ModifyTime)),
			parts.Fact(Text.Description, html.Name(cmp.Or(d.StatusDescription, parts.None))), parts.Fact(Text.ID, html.Text(d.ID))),
		html.El("h2", html.Text(Text.Groups)), groups, deadlines(&d), advice)
	return h.Show(w, r, Text.Deployment+" "+parts.ShortID(id), body, err)
}

// deadlines says by when which group has to make progress.
func deadlines(d *drover.Deployment) html.Part {
	var lines []html.Part
	for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
		if s := d.TaskGroups[name]; d.Active() && s.Waiting() && !s.RequireProgressBy.IsZero() {
			lines = append(lines, html.El("li", html.Name(name), html.Text(": "+Text.Deadline+" "), parts.Instant(s.RequireProgressBy)))
		}
	}
	return html.If(len(lines) > 0, html.El("ul", lines...))
}
