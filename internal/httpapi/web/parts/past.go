package parts

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/usage"
)

// pastText are the words of what was used over time.
var pastText = struct{ CPU, Memory, Now, Unknown string }{
	CPU: "CPU", Memory: "Memory", Now: "now %s, at most %s in %s", Unknown: "not known now, at most %s in %s",
}

// PastPath is where the API says what an allocation, or with node_id a node, used.
func PastPath(of, id string) string { return "/v1/usage/history?" + url.Values{of: {id}}.Encode() }

// Past shows what an allocation or a node used as two small curves, each with its numbers in words; nothing if nobody looked yet.
func Past(p *usage.Past) html.Part {
	memory := make([]float64, 0, len(p.Memory))
	for _, v := range p.Memory {
		memory = append(memory, float64(v))
	}
	curve := func(name, tone string, values []float64, say func(float64) string) html.Part {
		first := slices.IndexFunc(values, func(v float64) bool { return v >= 0 })
		if first < 0 {
			return html.Part{}
		}
		most, span := say(slices.Max(values)), Short(time.Duration(len(values)-first)*p.Step)
		words := fmt.Sprintf(pastText.Unknown, most, span)
		if now := values[len(values)-1]; now >= 0 {
			words = fmt.Sprintf(pastText.Now, say(now), most, span)
		}
		return Fact(name, html.Group(Spark(name+": "+words, p.From, p.Step, []Line{{Name: name, Tone: tone, Values: values}}),
			html.El("small", html.Text(words))))
	}
	both := html.Group(
		curve(pastText.CPU, "prog", p.CPU, func(v float64) string { return fmt.Sprintf("%.1f %%", v) }),
		curve(pastText.Memory, "ok", memory, func(v float64) string { return Size(int64(v)) }))
	return html.If(len(p.CPU) > 0, html.El("dl", html.Class("facts past"), both))
}
