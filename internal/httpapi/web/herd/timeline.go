package herd

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi/web/fleetview"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// fleetSpans are how far back the timeline of machines looks; the third is where it begins.
var fleetSpans = []string{"10m", "1h", "24h", "168h", "720h"}

// timelinePath is the page of what machines did.
var timelinePath = html.Path("ui", "fleet", "timeline")

// timeline shows what machines did, of a pool or of all.
func (h *Pages) timeline(w http.ResponseWriter, r *http.Request) error {
	pool, since := r.URL.Query().Get("pool"), r.URL.Query().Get("since")
	if !slices.Contains(fleetSpans, since) {
		since = fleetSpans[2]
	}
	var pools []fleet.PoolStatus
	if err := h.Ask(r, api("fleet", "pools"), &pools); err != nil {
		return h.Show(w, r, fleetview.Text.Timeline, html.Part{}, err)
	}
	names := []string{""}
	for i := range pools {
		names = append(names, pools[i].Name)
	}
	form := html.El("form", html.Class("row search"), pick("pool", fleetview.Text.Pool, pool, names),
		pick("since", fleetview.Text.Span, since, fleetSpans), html.El("button", html.Text(fleetview.Text.Show)))
	var t fleet.Timeline
	query := url.Values{"since": {since}}
	if pool != "" {
		query.Set("pool", pool)
	}
	var content html.Part
	if err := h.Ask(r, api("fleet", "timeline")+"?"+query.Encode(), &t); err != nil {
		content = h.Failed(r, err)
	} else {
		content = fleetview.Timeline(&t)
	}
	return h.Write(w, r, http.StatusOK, fleetview.Text.Timeline, html.Group(html.El("h1", html.Text(fleetview.Text.Timeline)),
		html.El("p", html.Class("muted"), html.Text(fleetview.Text.TimelineMore)), form, parts.Live("timeline", fleetTopics, 10, content)),
		"charts.js")
}

// pick is a field of a form with which one of the values is chosen; "" stands for all.
func pick(name, label, chosen string, values []string) html.Part {
	options := []html.Part{html.ID(name), html.Attr("name", name)}
	for _, v := range values {
		words := v
		if v == "" {
			words = fleetview.Text.AllPools
		}
		options = append(options, html.El("option", html.Attr("value", v), html.Flag("selected", v == chosen), html.Text(words)))
	}
	return html.El("div", html.El("label", html.Attr("for", name), html.Text(label)), html.El("select", options...))
}
