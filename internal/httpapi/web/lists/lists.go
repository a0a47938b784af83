package lists

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// Site is the page of which these are part.
type Site interface {
	// Read reads what the API has at a path, as the viewer, and returns the answer's headers. Errors: *httpapi.StatusError.
	Read(r *http.Request, path string, out any) (http.Header, error)
	// Show answers with a page, or with what the API said instead.
	Show(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error
	// Done says what an action did that led here; nothing if none did.
	Done(r *http.Request) html.Part
	// Plans reports whether the viewer may write jobs.
	Plans(r *http.Request) bool
	// Failed says what went wrong, and what to do.
	Failed(r *http.Request, err error) html.Part
	// Cause says why an execution ended.
	Cause(c execution.Cause) string
}

// Pages serves them.
type Pages struct{ Site }

// Routes are theirs; where they are answered and what they need is the same for all of the page.
func (p *Pages) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /ui/jobs", Handle: p.jobs},
		{Pattern: "GET /ui/allocations", Handle: p.allocations},
		{Pattern: "GET /ui/clients", Handle: p.nodes},
		{Pattern: "GET /ui/executions", Handle: p.executions},
	}
}

// Names of pages, for the bar.
var (
	JobsName        = text.Jobs
	AllocationsName = text.Allocations
	NodesName       = text.Nodes
	ExecutionsName  = text.Executions
)

// perPage is how many rows a page has.
const perPage = 50

// list is one of the lists.
type list struct {
	at       html.URL // its page
	title    string
	path     string // of the API
	columns  []column
	statuses []string
	fields   []column // what else it is asked for, by the API's name of it
	every    int      // seconds after which it is looked at again, whatever happens; 0: never
	first    string   // what it is sorted by where nobody said
	empty    string
	topics   []string
	more     html.Part // above it
	full     bool      // the API wants a namespace
}

// page is what came of asking the API for one.
type page[T any] struct {
	rows  []T
	next  string // "" for the last one
	total string // "" where the API does not say
	// counts are how many have each status, as "dead=3, running=12"; "" where the API does not say.
	counts string
	// silent are the servers that did not answer, so that what they have is not here.
	silent string
}

// asked is what an address asks a list for.
type asked struct {
	words, status, sort, after string
	fields                     []string // what the list's fields have, "" for nothing
}

func askedFor(r *http.Request, l *list) asked {
	q := r.URL.Query()
	a := asked{words: q.Get("q"), status: q.Get("status"), sort: q.Get("sort"), after: q.Get("after")}
	for _, f := range l.fields {
		a.fields = append(a.fields, strings.TrimSpace(q.Get(f.by)))
	}
	by := strings.TrimPrefix(a.sort, "-")
	if by == "" || !slices.ContainsFunc(l.columns, func(c column) bool { return c.by == by }) {
		a.sort = l.first
	}
	if !slices.Contains(l.statuses, a.status) {
		a.status = ""
	}
	return a
}

// address is that of the list with what was asked for.
func (a asked) address(l *list) html.URL {
	to := l.at
	for _, p := range [][2]string{{"q", a.words}, {"status", a.status}, {"sort", a.sort}, {"after", a.after}} {
		if p[1] != "" && (p[0] != "sort" || p[1] != l.first) {
			to = to.With(p[0], p[1])
		}
	}
	for i, f := range l.fields {
		if a.fields[i] != "" {
			to = to.With(f.by, a.fields[i])
		}
	}
	return to
}

// read asks the API for a page. Errors: those of Site.Read.
func read[T any](p *Pages, r *http.Request, l *list, a asked) (page[T], error) {
	query := url.Values{"per_page": {strconv.Itoa(perPage)}, "stale": {"true"}, "sort": {a.sort}, "counts": {"status"}}
	if l.full {
		query.Set("namespace", "*")
	}
	for name, value := range map[string]string{"search": a.words, "status": a.status, "next_token": a.after} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for i, f := range l.fields {
		if a.fields[i] != "" {
			query.Set(f.by, a.fields[i])
		}
	}
	var got page[T]
	header, err := p.Read(r, l.path+"?"+query.Encode(), &got.rows)
	got.next, got.total, got.silent = header.Get("X-Nomad-Nexttoken"), header.Get("Drover-Total"), header.Get("Drover-Silent-Servers")
	got.counts = header.Get("Drover-Counts")
	return got, err
}

// show answers with a page of the list, whose rows are made already.
func show[T any](p *Pages, w http.ResponseWriter, r *http.Request, l *list, a asked, got page[T], rows []html.Part, err error) error {
	head := make([]html.Part, 0, len(l.columns))
	for _, c := range l.columns {
		head = append(head, a.header(l, c))
	}
	count := html.Part{}
	if n, unsaid := strconv.Atoi(got.total); unsaid == nil {
		count = html.El("p", html.Class("muted row"), html.El("span", html.Text(fmt.Sprintf(text.Count, n))), a.facets(l, got.counts))
	}
	following := a
	following.after = got.next
	first := a
	first.after = ""
	if err != nil && httpapi.Status(err) == http.StatusBadRequest { // what was typed stays
		return p.Show(w, r, l.title, html.Group(l.more, a.form(l), p.Failed(r, err)), nil)
	}
	silent := html.If(got.silent != "", html.El("div", html.Class("notice warn"), html.El("strong", html.Text(text.Silent)),
		html.El("p", html.Name(got.silent))))
	body := html.Group(p.Done(r), l.more, a.form(l), parts.Live("list", l.topics, l.every, silent, count,
		parts.TableOf(l.title, head, rows, l.empty), Pager(first.address(l), following.address(l), a.after != "", got.next != "")))
	return p.Show(w, r, l.title, body, err)
}

// facets has how many have each status, in the order of the list's statuses; each leads to those alone, and the one that is shown to all.
func (a asked) facets(l *list, said string) html.Part {
	counts := map[string]string{}
	for one := range strings.SplitSeq(said, ", ") {
		status, n, _ := strings.Cut(one, "=")
		counts[status] = n
	}
	var links []html.Part
	for _, status := range l.statuses {
		if counts[status] == "" && status != a.status {
			continue
		}
		to, link := a, []html.Part{html.Class("facet"), parts.Status(status), html.Text(" " + cmp.Or(counts[status], "0"))}
		if to.after, to.status = "", status; status == a.status {
			to.status, link = "", append(link, html.Attr("aria-current", "true"))
		}
		links = append(links, html.El("a", append(link, html.Href(to.address(l)))...))
	}
	return html.If(len(links) > 1 || a.status != "", html.Group(links...))
}

// Pager leads to the first page of a list, and to the following one, where there are such.
func Pager(first, following html.URL, back, on bool) html.Part {
	return html.El("div", html.Class("row pager"), html.If(back, html.El("a", html.Href(first), html.Text(text.FirstPage))),
		html.If(on, html.El("a", html.Href(following), html.Text(text.NextPage))))
}

// header is a column's, which sorts by it, and the other way round where the list is sorted by it.
func (a asked) header(l *list, c column) html.Part {
	scope := html.Attr("scope", "col")
	if c.by == "" {
		return html.El("th", scope, html.Text(c.words))
	}
	to, sorted := asked{words: a.words, status: a.status, sort: c.by, fields: a.fields}, html.Part{}
	switch a.sort {
	case c.by:
		to.sort, sorted = "-"+c.by, html.Attr("aria-sort", "ascending")
	case "-" + c.by:
		sorted = html.Attr("aria-sort", "descending")
	}
	link := html.El("a", html.Href(to.address(l)), html.Text(c.words))
	if a.sort != c.by && a.sort != "-"+c.by {
		return html.El("th", scope, link)
	}
	return html.El("th", scope, sorted, link)
}

// form searches by words and picks a status.
func (a asked) form(l *list) html.Part {
	options := []html.Part{
		html.ID("status"), html.Attr("name", "status"), html.El("option", html.Attr("value", ""), html.Text(text.AnyStatus)),
	}
	for _, s := range l.statuses {
		options = append(options, html.El("option", html.Attr("value", s), html.Flag("selected", s == a.status), html.Text(s)))
	}
	fields := make([]html.Part, 0, len(l.fields))
	for i, f := range l.fields {
		fields = append(fields, html.El("div", html.El("label", html.Attr("for", f.by), html.Text(f.words)),
			html.El("input", html.ID(f.by), html.Class("brief"), html.Attr("name", f.by), html.Attr("value", a.fields[i]))))
	}
	return html.El("form", html.Class("row search"), html.Attr("role", "search"),
		html.El("div", html.El("label", html.Attr("for", "q"), html.Text(text.Search)), html.El("input", html.ID("q"), html.Attr("name", "q"),
			html.Attr("type", "search"), html.Attr("placeholder", text.SearchMore), html.Attr("value", a.words))),
		html.El("div", html.El("label", html.Attr("for", "status"), html.Text(text.Status)), html.El("select", options...)),
		html.Group(fields...),
		html.If(a.sort != l.first, html.El("input", html.Attr("type", "hidden"), html.Attr("name", "sort"), html.Attr("value", a.sort))),
		html.El("button", html.Text(text.Find)),
		html.If(a.words+a.status+strings.Join(a.fields, "") != "", html.El("a", html.Href(l.at), html.Text(text.All))))
}

func (p *Pages) jobs(w http.ResponseWriter, r *http.Request) error {
	l := &list{
		at: html.Path("ui", "jobs"), title: text.Jobs, path: "/v1/jobs", columns: jobColumns, first: "name", empty: text.NoJobs, full: true,
		statuses: []string{drover.JobStatusRunning, drover.JobStatusPending, drover.JobStatusDead},
		topics:   []string{drover.TopicJob, drover.TopicAllocation},
	}
	if p.Plans(r) {
		l.more = html.El("p", html.El("a", html.Href(html.Path("ui", "jobs", "run")), html.Text(text.RunJob)))
	}
	a := askedFor(r, l)
	got, err := read[drover.JobListStub](p, r, l, a)
	rows := make([]html.Part, 0, len(got.rows))
	for _, j := range got.rows {
		rows = append(rows, parts.Row(parts.Link(parts.JobPath(j.ID, j.Namespace), j.ID), parts.Status(j.Status),
			html.Text(Counts(j.JobSummary)), html.Name(j.Namespace), html.Text(j.Type), html.Int(j.Priority), parts.Moment(j.SubmitTime)))
	}
	return show(p, w, r, l, a, got, rows, err)
}

// Counts says how many allocations are in which state.
func Counts(s *drover.JobSummary) string {
	if s == nil {
		return parts.None
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
	return cmp.Or(strings.Join(said, ", "), parts.None)
}

// allocations lists those of all namespaces that the viewer may see.
func (p *Pages) allocations(w http.ResponseWriter, r *http.Request) error {
	l := &list{
		at: html.Path("ui", "allocations"), title: text.Allocations, path: "/v1/allocations", columns: allocationColumns, first: "-created",
		empty: text.NoAllocations, full: true, topics: []string{drover.TopicAllocation},
		statuses: []string{
			drover.AllocClientRunning, drover.AllocClientPending, drover.AllocClientFailed, drover.AllocClientLost, drover.AllocClientUnknown,
			drover.AllocClientComplete,
		},
	}
	a := askedFor(r, l)
	got, err := read[drover.AllocationListStub](p, r, l, a)
	rows := make([]html.Part, 0, len(got.rows))
	for _, one := range got.rows {
		rows = append(rows, parts.Row(parts.Link(parts.AllocPath(one.ID), parts.ShortID(one.ID)), html.Name(one.Name),
			parts.Status(one.ClientStatus), html.Text(one.DesiredStatus), parts.Link(parts.JobPath(one.JobID, one.Namespace), one.JobID),
			parts.Link(html.Path("ui", "clients", one.NodeID), one.NodeName), parts.Moment(one.CreateTime)))
	}
	return show(p, w, r, l, a, got, rows, err)
}

func (p *Pages) nodes(w http.ResponseWriter, r *http.Request) error {
	l := &list{
		at: html.Path("ui", "clients"), title: text.Nodes, path: "/v1/nodes", columns: nodeColumns, first: "name", empty: text.NoNodes,
		topics: []string{drover.TopicNode},
		statuses: []string{
			drover.NodeStatusReady, drover.NodeIneligible, drover.NodeDraining, drover.NodeStatusDown, drover.NodeStatusDisconnected,
			drover.NodeStatusInit,
		},
		more: html.El("p", html.El("a", html.Href(html.Path("ui", "topology")), html.Text(text.Topology))),
	}
	a := askedFor(r, l)
	got, err := read[drover.NodeListStub](p, r, l, a)
	rows := make([]html.Part, 0, len(got.rows))
	for _, n := range got.rows {
		rows = append(rows, parts.Row(parts.Link(html.Path("ui", "clients", n.ID), n.Name),
			parts.Status(drover.NodeCondition(n.Status, n.SchedulingEligibility, n.Drain)), html.Name(n.NodePool), html.Name(n.Datacenter),
			html.Name(cmp.Or(n.NodeClass, parts.None)), html.Text(parts.ShortID(n.ID)), html.Text(n.Version)))
	}
	return show(p, w, r, l, a, got, rows, err)
}
