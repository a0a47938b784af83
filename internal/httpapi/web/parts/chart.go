package parts

import (
	"encoding/json"
	"time"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// Line is one of a chart: a number for each step; below 0 it is not known. Its tone is ok, prog, warn, bad, lost or idle.
type Line struct {
	Name   string    `json:"name"`
	Tone   string    `json:"tone"`
	Values []float64 `json:"values"`
}

// chartData is what the script draws.
func chartData(unit string, from time.Time, step time.Duration, lines []Line) html.Part {
	data, _ := json.Marshal(map[string]any{ // numbers and texts
		"from": from.UnixMilli(), "step": step.Milliseconds(), "unit": unit, "lines": lines,
	})
	return html.Attr("data-chart", string(data))
}

// Spark is a chart in a line of text, without axes; words stand for it.
func Spark(words string, from time.Time, step time.Duration, lines []Line) html.Part {
	return html.El("div", html.Class("chart spark"), html.Attr("role", "img"), html.Attr("aria-label", words),
		chartData("", from, step, lines))
}

// Chart shows lines over time, drawn by a script. Who has none, or does not see, has the numbers as a table: more is that.
func Chart(id, caption, unit string, from time.Time, step time.Duration, lines []Line, more html.Part) html.Part {
	legend := []html.Part{html.Class("row legend")}
	for _, l := range lines {
		legend = append(legend, html.El("span", html.Class("line "+l.Tone), html.Text(l.Name)))
	}
	return html.Group(html.El("h2", html.ID(id+"-name"), html.Text(caption)), html.El("p", legend...),
		html.El("div", html.ID(id), html.Class("chart"), html.Attr("role", "img"), html.Attr("aria-label", caption),
			chartData(unit, from, step, lines)), more)
}
