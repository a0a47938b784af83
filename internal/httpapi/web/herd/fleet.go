package herd

import (
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi/web/fleetview"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// fleetTopics are those of which the fleet's pages show something.
var fleetTopics = []string{drover.TopicInstance, drover.TopicFleetPool}

// fleet shows pools, what waits for machines, what would be done now, machines and what they cost. Each section fails alone.
func (h *Pages) fleet(w http.ResponseWriter, r *http.Request) error {
	var pools []fleet.PoolStatus
	var waiting []fleet.Waiting
	var plans []fleet.Plan
	var machines []fleet.Instance
	if err := h.Ask(r, api("fleet", "pools"), &pools); err != nil {
		return h.Show(w, r, fleetview.Text.Fleet, html.Part{}, err)
	}
	body := html.Group(html.El("p", html.El("a", html.Href(timelinePath), html.Text(fleetview.Text.Timeline))),
		parts.Live("pools", fleetTopics, 5, fleetview.Pools(pools)),
		h.fleetSection(r, "waiting", fleetview.Text.Waiting, api("fleet", "waiting"), &waiting,
			func() html.Part { return fleetview.Waiting(waiting) }),
		h.fleetSection(r, "plan", fleetview.Text.Plan, api("fleet", "plan"), &plans, func() html.Part { return fleetview.Plans(plans) }),
		h.fleetSection(r, "machines", fleetview.Text.Machines, api("fleet", "instances"), &machines,
			func() html.Part { return fleetview.Machines(machines) }),
		h.costs(r, "day,job"), h.costs(r, "namespace"), h.costs(r, "job"))
	return h.Show(w, r, fleetview.Text.Fleet, body, nil)
}

// costs is a section with what machines cost: by day, and each by job; by namespace; or by job.
func (h *Pages) costs(r *http.Request, by string) html.Part {
	var report fleet.CostReport
	return h.fleetSection(r, "costs-"+strings.ReplaceAll(by, ",", "-"), fleetview.Text.CostsBy[by], api("fleet", "cost")+"?by="+by, &report,
		func() html.Part { return fleetview.Costs(&report) })
}

// fleetSection is a section of the fleet's page with what the API says, or with why it says nothing.
func (h *Pages) fleetSection(r *http.Request, id, title, path string, out any, content func() html.Part) html.Part {
	head := html.El("h2", html.Text(title))
	if err := h.Ask(r, path, out); err != nil {
		return parts.Live(id, fleetTopics, 5, head, h.Failed(r, err))
	}
	return parts.Live(id, fleetTopics, 5, head, content())
}

// machine explains one.
func (h *Pages) machine(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("machine")
	var x fleet.Explanation
	err := h.Ask(r, api("fleet", "instance", id), &x)
	return h.Show(w, r, id, parts.Live("machine", fleetTopics, 5, fleetview.Explanation(&x)), err)
}
