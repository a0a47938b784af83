package fleetview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// Phases are those of machines, in the order of a life, with their tones.
var Phases = []struct {
	Name fleet.PhaseName
	Tone string
}{
	{fleet.PhaseAsked, "idle"},
	{fleet.PhaseBooting, "warn"},
	{fleet.PhaseActive, "ok"},
	{fleet.PhaseIdle, "prog"},
	{fleet.PhaseDraining, "lost"},
	{fleet.PhaseReturning, "bad"},
}

// Timeline shows what each machine did, drawn by a script; who has none, or does not see, has it in words.
func Timeline(t *fleet.Timeline) html.Part {
	legend := []html.Part{html.Class("row legend")}
	for _, p := range Phases {
		legend = append(legend, html.El("span", html.Class("phase "+p.Tone), html.Text(Text.Phases[p.Name])))
	}
	rows := make([]html.Part, 0, len(t.Machines))
	for i := range t.Machines {
		m := &t.Machines[i]
		said := parts.Status(m.State.String())
		if m.Work > 0 {
			said = parts.Toned("ok", fmt.Sprintf(Text.Busy, m.Work))
		}
		rows = append(rows, parts.Row(parts.Link(MachinePath(m.ID), parts.ShortID(m.ID)), html.Name(cmp.Or(m.Pool, parts.None)), said,
			bar(t, m), html.Text(fleet.Money(m.Charged)), html.Name(cmp.Or(m.Bought, parts.None)), html.Name(cmp.Or(m.Reason, parts.None))))
	}
	more := html.If(t.More > 0, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(Text.MoreMachines, t.More))))
	return html.Group(html.El("p", legend...), parts.Table(Text.Timeline, Text.TimelineColumns, rows, Text.NoTimeline), more)
}

// bar is what a machine did in the span of the timeline.
func bar(t *fleet.Timeline, m *fleet.MachineTimeline) html.Part {
	type piece struct {
		Tone string `json:"tone"`
		From int64  `json:"from"`
		To   int64  `json:"to"`
	}
	pieces, said := []piece{}, make([]string, 0, len(m.Phases))
	for _, p := range m.Phases {
		end := p.To
		if end.IsZero() || end.After(t.To) {
			end = t.To
		}
		words := Text.Phases[p.Name] + " " + parts.Short(end.Sub(p.From))
		if p.Reason != "" {
			words += " (" + p.Reason + ")"
		}
		said = append(said, words)
		if end.Before(t.From) {
			continue
		}
		tone := ""
		for _, known := range Phases {
			if known.Name == p.Name {
				tone = known.Tone
			}
		}
		pieces = append(pieces, piece{tone, max(0, p.From.Sub(t.From).Milliseconds()), end.Sub(t.From).Milliseconds()})
	}
	data, _ := json.Marshal(map[string]any{"span": t.To.Sub(t.From).Milliseconds(), "pieces": pieces}) // numbers and words of ours
	words := strings.Join(said, ", ")
	return html.Group(html.El("div", html.Class("gantt"), html.Attr("aria-hidden", "true"), html.Attr("title", words),
		html.Attr("data-gantt", string(data))), html.El("small", html.Name(cmp.Or(words, parts.None))))
}
