package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi/web/admin"
	"github.com/drover-project/drover/internal/httpapi/web/find"
	"github.com/drover-project/drover/internal/httpapi/web/herd"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/lists"
	"github.com/drover-project/drover/internal/httpapi/web/nodeview"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/httpapi/web/play"
	"github.com/drover-project/drover/internal/policy"
)

// overviewPath is where the page begins.
const overviewPath = "/ui/"

// entry is a page of the navigation.
type entry struct {
	words string
	path  html.URL
	key   string // that goes there after g; "" is none
	may   func(l *acl.Levels) bool
}

// Who sees something of a page.
func everyone(*acl.Levels) bool       { return true }
func ofJobs(l *acl.Levels) bool       { return l.Jobs }
func ofRunners(l *acl.Levels) bool    { return l.Runners }
func ofServices(l *acl.Levels) bool   { return l.Services }
func ofVolumes(l *acl.Levels) bool    { return l.Volumes }
func ofVariables(l *acl.Levels) bool  { return l.Variables }
func ofNodes(l *acl.Levels) bool      { return l.Node != "" }
func ofFleet(l *acl.Levels) bool      { return l.Fleet != "" }
func ofServers(l *acl.Levels) bool    { return l.Operator != "" || l.Node != "" }
func ofDoctor(l *acl.Levels) bool     { return l.Agent != "" || l.Node != "" }
func ofManagement(l *acl.Levels) bool { return l.Management }
func ofNamespaces(l *acl.Levels) bool {
	return l.Jobs || l.Runners || l.Services || l.Volumes || l.Variables
}

func ofPlayers(l *acl.Levels) bool {
	return l.Runners && (somewhere(l, policy.ClaimRunner, policy.Execute) || somewhere(l, policy.WriteEnvironment))
}
func (e entry) offered(l *acl.Levels) bool { return l == nil || l.Management || e.may(l) }

// navigation is the pages that many open, and more those that fewer do.
var (
	navigation = []entry{
		{herd.OverviewName, html.Path("ui", ""), "o", everyone},
		{play.Text.Playground, html.Path("ui", "play"), "p", ofPlayers},
		{herd.EnvironmentsName, html.Path("ui", "environments"), "e", ofRunners},
		{lists.ExecutionsName, html.Path("ui", "executions"), "x", ofRunners},
		{lists.JobsName, html.Path("ui", "jobs"), "j", ofJobs},
		{lists.AllocationsName, html.Path("ui", "allocations"), "a", ofJobs},
		{lists.NodesName, html.Path("ui", "clients"), "n", ofNodes},
		{nodeview.Text.Topology, nodeview.TopologyPath(), "t", ofNodes},
		{herd.FleetName, html.Path("ui", "fleet"), "f", ofFleet},
	}
	more = []entry{
		{herd.EventsName, html.Path("ui", "events"), "v", everyone},
		{admin.Text.Servers, html.Path("ui", "servers"), "s", ofServers},
		{admin.Text.Doctor, html.Path("ui", "doctor"), "", ofDoctor},
		{herd.RunnersName, html.Path("ui", "runners"), "r", ofRunners},
		{admin.Text.Deployments, html.Path("ui", "deployments"), "", ofJobs},
		{admin.Text.Evaluations, html.Path("ui", "evaluations"), "", ofJobs},
		{admin.Text.Services, html.Path("ui", "services"), "", ofServices},
		{admin.Text.Volumes, html.Path("ui", "volumes"), "", ofVolumes},
		{admin.Text.Variables, html.Path("ui", "variables"), "", ofVariables},
		{admin.Text.Namespaces, html.Path("ui", "namespaces"), "", ofNamespaces},
		{admin.Text.Access, html.Path("ui", "access"), "", ofManagement},
		{admin.AuditText.Audit, html.Path("ui", "audit"), "", ofManagement},
	}
)

// current reports whether the viewer is on the page or below it.
func (e entry) current(r *http.Request) bool {
	p := e.path.String()
	return r.URL.Path == p || p != overviewPath && strings.HasPrefix(r.URL.Path, p+"/")
}

// links lead to the pages that the viewer may see something of.
func links(r *http.Request, levels *acl.Levels, entries []entry) []html.Part {
	var items []html.Part
	for _, e := range entries {
		if !e.offered(levels) {
			continue
		}
		link := []html.Part{html.Href(e.path), html.Text(e.words)}
		if e.key != "" {
			link = append(link, html.Attr("data-key", e.key))
		}
		if e.current(r) {
			link = append(link, html.Attr("aria-current", "page"))
		}
		items = append(items, html.El("li", html.El("a", link...)))
	}
	return items
}

// crumb leads from a page below one of the navigation to that: it says what the page is of.
func crumb(r *http.Request, levels *acl.Levels) html.Part {
	for _, e := range slices.Concat(navigation, more) {
		if e.current(r) && r.URL.Path != e.path.String() && e.offered(levels) {
			return html.El("p", html.Class("crumb"), html.El("a", html.Href(e.path), html.Text(e.words)))
		}
	}
	return html.Part{}
}

func bar(r *http.Request, levels *acl.Levels, label parts.Label, mark html.Part) html.Part {
	items := links(r, levels, navigation)
	if rest := links(r, levels, more); len(rest) > 0 {
		here := html.Part{}
		if i := slices.IndexFunc(more, func(e entry) bool { return e.current(r) }); i >= 0 {
			here = html.Class("here")
		}
		items = append(items, html.El("li", html.El("details", html.ID("more"),
			html.El("summary", here, html.Text(text.More)), html.El("ul", rest...))))
	}
	return html.El("header", html.Class("bar"),
		html.El("a", html.Class("brand"), html.Href(html.Path("ui", "")), html.Text("Drover")), label.Part(),
		html.El("button", html.ID("menu"), html.Attr("type", "button"), html.Attr("aria-expanded", "false"),
			html.Attr("aria-controls", "site"), html.Text(text.Menu)),
		html.El("nav", html.ID("site"), html.Attr("aria-label", text.Pages), html.El("ul", items...)),
		html.El("div", html.Class("end"), find.Box(), mark, themeForm(r), session(r)),
	)
}
