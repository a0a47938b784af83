package fleetview

import (
	"fmt"
	"strconv"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// Simulated shows what came of a simulation: ours against other rules, and how it went with ours.
func Simulated(list []fleet.Simulated) html.Part {
	rows := make([]html.Part, 0, len(list))
	for i := range list {
		s := &list[i]
		bound := parts.None
		if s.Bound > 0 {
			bound = fmt.Sprintf("%.2f", s.Cost/s.Bound)
		}
		rows = append(rows, parts.Row(html.Name(s.Rules), html.Text(fleet.Money(s.Total)), html.Text(fleet.Money(s.Cost)),
			html.Text(fleet.Money(s.Waiting)), html.Text(bound), html.Text(parts.Short(s.WaitP50)), html.Text(parts.Short(s.WaitP95)),
			html.Text(parts.Short(s.WaitP99)), html.Int(s.Machines), html.Int(s.Peak), html.Text(strconv.FormatFloat(s.Hours, 'f', 1, 64))))
	}
	table := parts.Table(Text.Simulate, Text.SimulatedColumns, rows, Text.NoPlan)
	if len(list) == 0 || len(list[0].Points) < 2 {
		return table
	}
	points := list[0].Points
	step := (points[len(points)-1].At - points[0].At) / time.Duration(len(points)-1)
	line := func(name, tone string, pick func(*fleet.SimulatedPoint) float64) parts.Line {
		l := parts.Line{Name: name, Tone: tone}
		for i := range points {
			l.Values = append(l.Values, pick(&points[i]))
		}
		return l
	}
	from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) // where virtual time begins
	stopped := make([]html.Part, 0, len(list[0].Stopped))
	for _, s := range list[0].Stopped {
		stopped = append(stopped, html.El("li", html.Name(fmt.Sprintf(Text.Stopped, s.What, parts.Short(s.Waited)))))
	}
	return html.Group(table, html.El("p", html.Class("muted"), html.Name(list[0].Cloud)),
		html.If(len(stopped) > 0, html.El("ul", stopped...)),
		parts.Chart("machines-chart", Text.OverTime, "", from.Add(points[0].At), step, []parts.Line{
			line(Text.Machines, "ok", func(p *fleet.SimulatedPoint) float64 { return float64(p.Machines) }),
			line(Text.Running, "prog", func(p *fleet.SimulatedPoint) float64 { return float64(p.Running) }),
			line(Text.WaitingTasks, "bad", func(p *fleet.SimulatedPoint) float64 { return float64(p.Waiting) }),
		}, html.Part{}),
		parts.Chart("cost-chart", Text.Price, "$", from.Add(points[0].At), step, []parts.Line{
			line(Text.Price, "warn", func(p *fleet.SimulatedPoint) float64 { return p.PerHour }),
		}, html.Part{}))
}
