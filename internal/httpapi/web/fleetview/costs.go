package fleetview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// mostShares is how many jobs a day's cost is told by; the others are told together.
const mostShares = 4

// cost is a row of a table of costs: a line of the report, or all lines of a day and pool.
type cost struct {
	fleet.CostLine
	shares []fleet.CostLine // of the day, by the second key, the dearest first
}

// rowsOf are the rows of a report: each line one, or each day and pool one with its lines as shares; the newest day or the dearest first.
func rowsOf(r *fleet.CostReport) []cost {
	var rows []cost
	if !strings.HasPrefix(r.By, "day,") {
		for _, l := range r.Lines {
			rows = append(rows, cost{CostLine: l})
		}
		return rows
	}
	at := map[[2]string]int{}
	for _, l := range r.Lines {
		key := [2]string{l.Key, l.Pool}
		i, known := at[key]
		if !known {
			i, at[key] = len(rows), len(rows)
			rows = append(rows, cost{CostLine: fleet.CostLine{Key: l.Key, Pool: l.Pool}})
		}
		rows[i].Cost += l.Cost
		rows[i].Hours += l.Hours
		rows[i].shares = append(rows[i].shares, l)
	}
	slices.SortStableFunc(rows, func(a, b cost) int { return cmp.Compare(b.Key, a.Key) })
	return rows
}

// Costs shows what each day cost, the newest first, and which jobs it was for; or what each job or namespace cost, the dearest first; and
// how that compares.
func Costs(r *fleet.CostReport) html.Part {
	list, columns := rowsOf(r), Text.CostColumns
	list = list[:min(len(list), most)]
	top := 0.0
	for i := range list {
		top = max(top, list[i].Cost)
	}
	rows := make([]html.Part, 0, len(list))
	for i := range list {
		l := &list[i]
		bar := html.El("meter", html.Attr("min", "0"), html.Attr("max", number(top)), html.Attr("value", number(l.Cost)),
			html.Attr("aria-label", l.Key), html.Text(fleet.Money(l.Cost)))
		cells := []html.Part{
			html.Name(l.Key), html.Name(cmp.Or(l.Pool, parts.None)), html.Text(fleet.Money(l.Cost)),
			html.Text(strconv.FormatFloat(l.Hours, 'f', 1, 64)), bar,
		}
		if l.shares != nil {
			columns, cells = Text.DayColumns, append(cells, shares(l.shares))
		}
		rows = append(rows, parts.Row(cells...))
	}
	total := html.If(len(rows) > 0, html.El("p", html.Text(Text.Total+": "+fleet.Money(r.Total))))
	return html.Group(parts.Table(Text.CostsBy[r.By], columns, rows, Text.NoCosts), total)
}

// shares says of which jobs a cost is made.
func shares(lines []fleet.CostLine) html.Part {
	var said []html.Part
	rest, more := 0.0, 0
	for i, l := range lines {
		if i >= mostShares && len(lines) > mostShares+1 {
			rest, more = rest+l.Cost, more+1
			continue
		}
		if i > 0 {
			said = append(said, html.Text(", "))
		}
		name := html.Name(l.Of)
		if namespace, id, ok := strings.Cut(l.Of, "/"); ok {
			name = parts.Link(parts.JobPath(id, namespace), l.Of)
		}
		said = append(said, name, html.Text(" "+fleet.Money(l.Cost)))
	}
	if more > 0 {
		said = append(said, html.Text(", "+fmt.Sprintf(Text.MoreJobs, more, fleet.Money(rest))))
	}
	return html.Group(said...)
}
