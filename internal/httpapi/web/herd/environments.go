package herd

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// environments lists those that the viewer may see: how each pool stands, how it stood in the last hour, how long claims and first outputs
// took then, and what is wrong with it.
func (h *Pages) environments(w http.ResponseWriter, r *http.Request) error {
	query := url.Values{"namespace": {"*"}}
	var all []execution.Environment
	if err := h.Ask(r, api("environments")+"?"+query.Encode(), &all); err != nil {
		return h.Show(w, r, execText.Environments, html.Part{}, err)
	}
	query.Set("since", spans[1])
	var kept execution.History
	missed := html.Part{} // of the history alone: the pools are there still
	if err := h.Ask(r, api("metrics", "history")+"?"+query.Encode(), &kept); err != nil {
		missed = h.Failed(r, err)
	}
	past := map[string]*execution.PoolHistory{}
	for i := range kept.Pools {
		past[execution.Key(kept.Pools[i].Namespace, kept.Pools[i].Environment)] = &kept.Pools[i]
	}
	rows := make([]html.Part, 0, len(all))
	for i := range all[:min(len(all), most)] {
		e := &all[i]
		rows = append(rows, h.environmentRow(r, e, &kept, past[e.Key()]))
	}
	left := html.If(kept.Missing > 0, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(execText.Unkept, kept.Missing))))
	body := html.Group(html.El("h1", html.Text(execText.Environments)), parts.Live("environments",
		[]string{drover.TopicEnvironment, drover.TopicRunner}, 5, cut(len(all)), missed,
		parts.Table(execText.Environments, execText.EnvironmentColumns, rows, execText.NoEnvironments), left),
		html.El("p", html.El("a", html.Href(html.Path("ui", "runners")), html.Text(execText.Runners))))
	return h.Write(w, r, http.StatusOK, execText.Environments, body, "charts.js")
}

// environmentRow is one environment's. Of a pool that cannot be asked only that is said.
func (h *Pages) environmentRow(r *http.Request, e *execution.Environment, kept *execution.History, past *execution.PoolHistory) html.Part {
	var s execution.PoolStatus
	wrong, tone := "", "bad"
	if err := h.Ask(r, api("environment", e.Key(), "pool"), &s); err != nil {
		wrong = err.Error()
	} else if wrong = s.LastError; wrong != "" && s.Warm >= s.Size {
		tone = "warn" // the pool is full all the same
	}
	says := html.Text(parts.None)
	if wrong != "" {
		says = html.El("span", html.Class("status "+tone), html.Name(wrong))
	}
	claims, first, fill := parts.None, parts.None, html.Text(parts.None)
	if past != nil {
		claims, first, fill = percentiles(&past.Claims.All), percentiles(&past.FirstBytes.All), spark(kept, past)
	}
	return parts.Row(parts.Link(html.Path("ui", "environments", e.Key()), e.Key()), html.Name(e.Image),
		html.Text(fmt.Sprintf("%d / %d", s.Warm, s.Size)), html.Int(s.Starting), html.Int(s.Queued), html.Int(s.Claimed), html.Int(s.Waiting),
		fill, html.Text(claims), html.Text(first), says)
}

// percentiles are the median, the 95th and the 99th, and of how many.
func percentiles(l *execution.Latency) string {
	if l.Count == 0 {
		return parts.None
	}
	return parts.Short(l.P50) + " / " + parts.Short(l.P95) + " / " + parts.Short(l.P99) + " (" + strconv.FormatInt(l.Count, 10) + ")"
}

// spark is the fill of a pool over time, small: how many were warm, and how many were wanted. In words it is the least and the most of
// them.
func spark(kept *execution.History, p *execution.PoolHistory) html.Part {
	known := slices.DeleteFunc(slices.Clone(p.Warm), func(v int) bool { return v < 0 })
	if len(known) == 0 {
		return html.Text(parts.None)
	}
	words := fmt.Sprintf(execText.WarmBetween, slices.Min(known), slices.Max(known), slices.Max(p.Size))
	return html.Group(parts.Spark(words, kept.From, kept.Step, []parts.Line{
		{Name: historyText.Size, Tone: "idle", Values: floats(p.Size)}, {Name: historyText.Warm, Tone: "ok", Values: floats(p.Warm)},
	}), html.El("small", html.Text(words)))
}

func floats(values []int) []float64 {
	out := make([]float64, 0, len(values))
	for _, v := range values {
		out = append(out, float64(v))
	}
	return out
}
