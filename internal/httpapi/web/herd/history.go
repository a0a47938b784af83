package herd

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// spans are how far back the page of an environment looks; the second is where it begins.
var spans = []string{"10m", "1h", "6h"}

// history shows how an environment's pool stood, and how long claims and starts took.
func (h *Pages) history(r *http.Request, key string) html.Part {
	since := r.URL.Query().Get("since")
	if !slices.Contains(spans, since) {
		since = spans[1]
	}
	query := url.Values{"since": {since}, "environment": {key}, "namespace": {execution.NamespaceOf(key)}}
	var kept execution.History
	head := []html.Part{html.El("h2", html.Text(historyText.History)), spanLinks(key, since)}
	if err := h.Ask(r, api("metrics", "history")+"?"+query.Encode(), &kept); err != nil {
		return parts.Live("history", nil, 10, append(head, h.Failed(r, err))...)
	}
	if len(kept.Pools) == 0 {
		return parts.Live("history", nil, 10, append(head, html.El("p", html.Class("muted"), html.Text(historyText.None)))...)
	}
	p := &kept.Pools[0]
	latencies := func(id, caption string, of *execution.LatencyHistory) html.Part {
		times := func(pick func(*execution.Latency) time.Duration) []float64 {
			values := make([]float64, 0, len(of.Steps))
			for i := range of.Steps {
				v := -1.0
				if of.Steps[i].Count > 0 {
					v = pick(&of.Steps[i]).Seconds()
				}
				values = append(values, v)
			}
			return values
		}
		row := parts.Row(html.Text(strconv.FormatInt(of.All.Count, 10)), html.Text(parts.Short(of.All.P50)), html.Text(parts.Short(of.All.P95)),
			html.Text(parts.Short(of.All.P99)))
		return parts.Chart(id, caption, "s", kept.From, kept.LatencyStep, []parts.Line{
			{Name: "p50", Tone: "ok", Values: times(func(l *execution.Latency) time.Duration { return l.P50 })},
			{Name: "p95", Tone: "prog", Values: times(func(l *execution.Latency) time.Duration { return l.P95 })},
			{Name: "p99", Tone: "bad", Values: times(func(l *execution.Latency) time.Duration { return l.P99 })},
		}, parts.Table(caption, historyText.LatencyColumns, []html.Part{row}, ""))
	}
	return parts.Live("history", nil, 10, append(head, poolChart(&kept, p), html.El("div", html.Class("split"),
		html.El("div", latencies("claims", historyText.Claims, &p.Claims)),
		html.El("div", latencies("first-bytes", historyText.FirstBytes, &p.FirstBytes)),
		html.El("div", latencies("starts", historyText.Starts, &p.Starts))))...)
}

// poolChart is the fill of a pool over time.
func poolChart(kept *execution.History, p *execution.PoolHistory) html.Part {
	var lines []parts.Line
	var rows []html.Part
	for _, one := range []struct {
		name, tone string
		values     []int
	}{
		{historyText.Size, "idle", p.Size},
		{historyText.Warm, "ok", p.Warm},
		{historyText.Claimed, "prog", p.Claimed},
		{historyText.Waiting, "bad", p.Waiting},
	} {
		numbers := make([]float64, 0, len(one.values))
		var known []int
		for _, v := range one.values {
			if numbers = append(numbers, float64(v)); v >= 0 {
				known = append(known, v)
			}
		}
		lines = append(lines, parts.Line{Name: one.name, Tone: one.tone, Values: numbers})
		if len(known) > 0 {
			rows = append(rows, parts.Row(html.Text(one.name), html.Int(slices.Min(known)), html.Int(slices.Max(known)),
				html.Int(known[len(known)-1])))
		}
	}
	return parts.Chart("fill", historyText.Fill, "", kept.From, kept.Step, lines,
		parts.Table(historyText.Fill, historyText.FillColumns, rows, historyText.None))
}

// spanLinks lead to other spans of the same page.
func spanLinks(key, now string) html.Part {
	links := []html.Part{html.Class("row")}
	for _, s := range spans {
		link := []html.Part{html.Href(html.Path("ui", "environments", key).With("since", s)), html.Text(s)}
		if s == now {
			link = append(link, html.Attr("aria-current", "true"))
		}
		links = append(links, html.El("a", link...))
	}
	return html.El("p", links...)
}
