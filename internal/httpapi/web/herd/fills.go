package herd

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// mostFills bounds the pools that the overview draws: those for which claims waited stand first.
const mostFills = 8

// fills draws how the pools were filled in the last hour, for who sees that there are some.
func (h *Pages) fills(r *http.Request, a *cluster.Attention) html.Part {
	if !slices.ContainsFunc(a.Areas, func(one cluster.Area) bool { return one.Name == cluster.AreaEnvironments }) {
		return html.Part{}
	}
	head := html.El("h2", html.Text(overviewText.Fills))
	var kept execution.History
	query := url.Values{"namespace": {"*"}, "since": {spans[1]}}
	if err := h.Ask(r, api("metrics", "history")+"?"+query.Encode(), &kept); err != nil {
		return html.Group(head, h.Failed(r, err))
	}
	if len(kept.Pools) == 0 {
		return html.Part{}
	}
	waited := func(p *execution.PoolHistory) int { return slices.Max(append([]int{0}, p.Waiting...)) }
	slices.SortStableFunc(kept.Pools, func(x, y execution.PoolHistory) int {
		return cmp.Or(cmp.Compare(waited(&y), waited(&x)), cmp.Compare(y.Claims.All.Count, x.Claims.All.Count))
	})
	tiles := []html.Part{html.Class("tiles")}
	for i := range kept.Pools[:min(len(kept.Pools), mostFills)] {
		p := &kept.Pools[i]
		key := execution.Key(p.Namespace, p.Environment)
		says := html.Part{}
		if n := waited(p); n > 0 {
			says = html.El("p", html.Class("warn"), html.Text(fmt.Sprintf(overviewText.Waited, n)))
		}
		tiles = append(tiles, html.El("li", parts.Link(html.Path("ui", "environments", key), key), html.El("div", spark(&kept, p)), says))
	}
	more := html.If(len(kept.Pools) > mostFills, html.El("p", html.El("a", html.Href(html.Path("ui", "environments")),
		html.Text(fmt.Sprintf(overviewText.FillsMore, len(kept.Pools)-mostFills)))))
	return html.Group(head, html.El("ul", tiles...), more)
}
