package herd

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/fleetview"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// overviewTopics are those of which the overview shows something.
var overviewTopics = []string{
	drover.TopicNode, drover.TopicJob, drover.TopicEvaluation, drover.TopicDeployment, drover.TopicEnvironment, drover.TopicRunner,
	drover.TopicInstance, drover.TopicFleetPool,
}

// overview shows how the cluster is in one look, and what of it wants attention; each line leads to its cause.
func (h *Pages) overview(w http.ResponseWriter, r *http.Request) error {
	var a cluster.Attention
	err := h.Ask(r, api("attention"), &a)
	if err != nil || len(a.Areas) == 0 {
		return h.Show(w, r, overviewText.Overview, html.Group(warning("idle", overviewText.NoAreas, overviewText.NoAreasMore), h.SignIn(r)), err)
	}
	body := html.Group(html.El("h1", html.Text(overviewText.Overview)), parts.Live("concerns", overviewTopics, 5, concernList(&a)),
		parts.Live("areas", overviewTopics, 5, areaList(&a)), parts.Live("fills", overviewTopics, 5, h.fills(r, &a)))
	return h.Write(w, r, http.StatusOK, overviewText.Overview, body, "charts.js")
}

// areaList has a tile for each area.
func areaList(a *cluster.Attention) html.Part {
	tiles := make([]html.Part, 0, len(a.Areas))
	for _, area := range a.Areas {
		name := overviewText.Areas[area.Name]
		if name == "" { // of a newer server
			name = area.Name
		}
		title := html.Text(name)
		if to := areaPath(area.Name); to != nil {
			title = html.El("a", html.Href(*to), title)
		}
		tiles = append(tiles, html.El("li", html.El("strong", title), stateOf(area.State), html.El("p", html.Name(area.Says))))
	}
	return html.El("ul", append([]html.Part{html.Class("tiles")}, tiles...)...)
}

// concernList lists what wants attention, the worst first.
func concernList(a *cluster.Attention) html.Part {
	head := html.El("h2", html.Text(fmt.Sprintf(overviewText.Attention, len(a.Concerns))))
	if len(a.Concerns) == 0 {
		return html.Group(head, html.El("p", html.Class("muted"), html.Text(overviewText.AllWell)))
	}
	items := make([]html.Part, 0, len(a.Concerns))
	for _, c := range a.Concerns {
		says := html.Name(c.Says)
		if to := concernPath(&c); to != nil {
			says = html.El("a", html.Href(*to), says)
		}
		more := []html.Part{html.Class("muted")}
		if !c.Since.IsZero() {
			more = append(more, html.Text(overviewText.Since+" "), parts.Instant(c.Since), html.Text(" "))
		}
		if c.Next != "" {
			more = append(more, html.El("code", html.Text(c.Next)))
		}
		items = append(items, html.El("li", stateOf(c.State), html.El("div", html.El("p", says), html.El("p", more...))))
	}
	return html.Group(head, html.El("ul", append([]html.Part{html.Class("concerns")}, items...)...))
}

// stateOf is the state of an area or a concern.
func stateOf(state string) html.Part {
	tone := map[string]string{cluster.OK: "ok", cluster.Weak: "warn", cluster.Broken: "bad"}[state]
	words := overviewText.States[state]
	if words == "" {
		words = state
	}
	return html.El("span", html.Class("status "+tone), html.Text(words))
}

// areaPath is the page that tells more of an area; nil if there is none yet.
func areaPath(area string) *html.URL {
	var to html.URL
	switch area {
	case cluster.AreaServers:
		to = html.Path("ui", "servers")
	case cluster.AreaNodes:
		to = html.Path("ui", "clients")
	case cluster.AreaEvaluations:
		to = html.Path("ui", "evaluations").With("status", drover.EvalBlocked)
	case cluster.AreaDeployments:
		to = html.Path("ui", "deployments")
	case cluster.AreaEnvironments:
		to = html.Path("ui", "environments")
	case cluster.AreaFleet:
		to = html.Path("ui", "fleet")
	default:
		return nil
	}
	return &to
}

// concernPath is the page of what a concern is about; that of its area if it is about nothing in particular.
func concernPath(c *cluster.Concern) *html.URL {
	if c.Subject == "" {
		return areaPath(c.Area)
	}
	to := html.Path("ui", "clients", c.Subject)
	switch c.Area {
	case cluster.AreaNodes:
	case cluster.AreaEvaluations:
		to = html.Path("ui", "jobs", c.Subject+"@"+c.Namespace, "evaluations")
	case cluster.AreaDeployments:
		to = html.Path("ui", "jobs", c.Subject+"@"+c.Namespace, "deployments")
	case cluster.AreaEnvironments:
		to = html.Path("ui", "environments", execution.Key(c.Namespace, c.Subject))
	case cluster.AreaFleet:
		if !strings.HasPrefix(c.Code, "machine.") {
			return areaPath(c.Area)
		}
		to = fleetview.MachinePath(c.Subject)
	default:
		return areaPath(c.Area)
	}
	return &to
}
