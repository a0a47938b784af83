package nodeview

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// drainPlan says what a drain with what the form says would do, before anybody is sure.
func (p *Pages) drainPlan(r *http.Request, id string) html.Part {
	query := drover.DrainSpec{IgnoreSystemJobs: r.PostForm.Has("system")}.PlanQuery(id)
	var plan drover.DrainPlan
	if err := p.Ask(r, api("drain", "plan")+"?"+query.Encode(), &plan); err != nil {
		return html.El("p", html.Class("muted"), html.Text(Text.DrainPlanUnknown+": "), html.Name(httpapi.Message(err)))
	}
	counts, rows := map[string]int{}, make([]html.Part, 0, len(plan.Moves))
	for _, m := range plan.Moves {
		counts[m.Fate]++
		where, tone := html.Name(strings.Join(m.Why, "; ")), "ok"
		switch {
		case m.ToNodeID != "":
			where = parts.Link(Path(m.ToNodeID), m.ToNodeName)
		case m.Fate == drover.DrainWaits:
			tone = "bad"
		default:
			tone = "idle"
		}
		rows = append(rows, parts.Row(parts.Link(html.Path("ui", "allocations", m.AllocID), m.Name),
			parts.Link(html.Path("ui", "jobs", m.JobID+"@"+m.Namespace), m.JobID),
			html.El("span", html.Class("status "+tone), html.Text(Text.Fates[m.Fate])), where))
	}
	var said []string
	for _, fate := range []string{drover.DrainMoves, drover.DrainWaits, drover.DrainEnds, drover.DrainStays} {
		if counts[fate] > 0 {
			said = append(said, fmt.Sprintf(Text.FateCounts[fate], counts[fate]))
		}
	}
	if plan.Hidden > 0 {
		said = append(said, fmt.Sprintf(Text.DrainPlanOthers, plan.Hidden))
	}
	return html.Group(html.If(len(said) > 0, html.El("p", html.Text(strings.Join(said, ", ")))),
		parts.Table(Text.DrainPlan, Text.DrainColumns, rows, Text.DrainPlanNone))
}
